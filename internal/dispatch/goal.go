package dispatch

import (
	"fmt"

	"github.com/tholehq/thole/event"
)

// goalPrompt is what the agent reads in a turn that works at a goal. The goal may have
// been cleared since the turn began.
func goalPrompt(objective string, g *event.Goal) string {
	text := "Work at the goal of this thread. It stays the same until it is reached:\n\n" + objective + "\n\n" +
		"Go on from where the work stands: look at the files and at what was done, not only at what was said. Nobody reads along, so decide what you can decide yourself. " +
		"When the goal is reached and you have checked that it is, call the tool goal_update of the server thole with status complete. " +
		"When you cannot go on without a person, call it with status blocked and a note that says what you need. Otherwise end your turn; the next one goes on. " +
		"Results of background jobs come as messages only when the work at the goal has ended: read them with the tool job_status."
	if g != nil && g.Budget > 0 {
		text += fmt.Sprintf(" %d of %d tokens are used.", g.Tokens, g.Budget)
	}
	return text
}
