package wire

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// BackgroundRequest asks what a thread's agent left running. With End that one is ended
// before, with EndAll all of them.
type BackgroundRequest struct {
	Thread thole.ThreadID `json:"thread"`
	End    string         `json:"end,omitempty"`
	EndAll bool           `json:"end_all,omitempty"`
}

// Background is what is left running. Known is false of an agent that does not say.
type Background struct {
	Known    bool                         `json:"known"`
	Ended    bool                         `json:"ended,omitempty"`
	Commands []provider.BackgroundCommand `json:"commands,omitempty"`
}
