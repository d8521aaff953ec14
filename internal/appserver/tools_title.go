package appserver

import (
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/protocol/app"
)

// titles reports whether a thread is to make the title of another, as the TUI and editors
// ask for after each first message. Its turns are answered without an agent.
func titles(p *app.ThreadStartParams) bool {
	return str(p.ThreadSource) == fold.SourceTitle && p.Ephemeral != nil && *p.Ephemeral
}
