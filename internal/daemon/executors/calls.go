package executors

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway/calls"
)

// CallsParams names a turn.
type CallsParams struct {
	Thread thole.ThreadID `json:"thread"`
	Turn   thole.TurnID   `json:"turn"`
}

// CallsResult is what was recorded of the turn's model calls, the oldest first.
type CallsResult struct {
	// Recording is whether calls are recorded now.
	Recording bool         `json:"recording"`
	Calls     []calls.Call `json:"calls"`
}

// calls lists what was recorded of a turn that the actor may see.
func (t *Service) calls(ctx context.Context, actor thole.Actor, p CallsParams) (r CallsResult, err error) {
	if _, err := t.cfg.Threads.Turn(ctx, actor, p.Thread, p.Turn); err != nil {
		return r, err
	}
	r.Recording, r.Calls = t.cfg.Recording, []calls.Call{}
	list, err := t.cfg.Calls.Calls(p.Thread, p.Turn)
	r.Calls = append(r.Calls, list...)
	return r, err
}
