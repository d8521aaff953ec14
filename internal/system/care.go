package system

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
)

// Methods of the home's owner for executors.
const (
	// MethodCloseThread syncs and stops a thread's executor now, behind its running
	// turn; its removal is due a day later.
	MethodCloseThread = "thole/executor/close"
	// MethodSweep does at once what is overdue.
	MethodSweep = "thole/sweep"
)

// CloseParams names a thread.
type CloseParams struct {
	Thread thole.ThreadID `json:"thread_id"`
}

// careMethods are served on the home's socket.
func (t *threads) careMethods() map[string]daemon.Method {
	return map[string]daemon.Method{
		MethodCloseThread: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p CloseParams
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "close thread: %w", err)
			}
			if _, err := t.machine.Get(ctx, actor, p.Thread); err != nil {
				return nil, err
			}
			return struct{}{}, t.dispatcher.Close(ctx, p.Thread)
		},
		MethodSweep: func(ctx context.Context, _ thole.Actor, _ json.RawMessage) (any, error) {
			return struct{}{}, t.dispatcher.Sweep(ctx)
		},
	}
}
