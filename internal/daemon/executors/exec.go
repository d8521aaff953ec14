package executors

import (
	"context"
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/executorclient"
)

// wakeTime bounds how long a client waits for an executor that has to be started.
const wakeTime = 2 * time.Minute

// Exec opens a session with the exec-server in a thread's executor. With start one that
// does not run is started. Who works there uses it: the executor is kept, and its files are
// saved afterwards. done ends the session. The thread must let the actor do that.
func (t *Service) Exec(ctx context.Context, actor thole.Actor, action authz.Action, id thole.ThreadID, start bool, on func(method string, params json.RawMessage)) (x *executorclient.Exec, done func(), err error) {
	if _, err := t.cfg.Threads.Get(authz.Doing(ctx, action), actor, id); err != nil {
		return nil, nil, err
	}
	if start {
		if err := t.wake(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	at, err := t.running(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if x, err = at.OpenExec(ctx, on); err != nil {
		at.Close()
		return nil, nil, err
	}
	return x, func() {
		at.Close()
		select {
		case <-x.Done(): // with its executor
			x.Close()
			return
		default:
		}
		x.Close()
		if err := t.cfg.Rows.Touch(context.WithoutCancel(ctx), at.id); err != nil {
			t.cfg.Log.Warn("work in an executor was not recorded", "executor", at.id, "err", err)
		}
	}, nil
}

// wake brings a thread's executor up, but does not wait for ever.
func (t *Service) wake(ctx context.Context, id thole.ThreadID) error {
	ctx, cancel := context.WithTimeoutCause(ctx, wakeTime, thole.Errorf(thole.CodeUnavailable, "the thread's executor did not start in time"))
	defer cancel()
	_, err := t.Ready(ctx, id)
	return err
}
