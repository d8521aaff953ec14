package executors

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// TurnsParams names a thread and how many of its newest turns are wanted.
type TurnsParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Limit  int            `json:"limit,omitempty"`
}

// TurnsResult has turns without their items, the newest first.
type TurnsResult struct {
	Turns []view.Run `json:"turns"`
}

func (t *Service) turns(ctx context.Context, actor thole.Actor, p TurnsParams) (TurnsResult, error) {
	page, err := t.cfg.Threads.Turns(ctx, actor, p.Thread, thread.PageParams{Desc: true, Limit: p.Limit})
	return TurnsResult{view.Each(page.Items, view.OfTurn)}, err
}
