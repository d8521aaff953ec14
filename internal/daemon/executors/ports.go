package executors

import (
	"context"
	"net"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/executorclient"
)

// Running finds the executor in which a thread's agent works.
func (t *Service) Running(ctx context.Context, id thole.ThreadID) (thole.ExecutorID, error) {
	info, err := t.running(ctx, id)
	return info.ID, err
}

// DialPort connects to a port in a thread's executor, if that is still the one that is
// named. Who looks at an agent's page uses its executor: it is kept.
func (t *Service) DialPort(ctx context.Context, id thole.ThreadID, in thole.ExecutorID, port uint16) (net.Conn, error) {
	info, err := t.running(ctx, id)
	if thole.CodeOf(err) == thole.CodeConflict || err == nil && info.ID != in {
		return nil, thole.Errorf(thole.CodeGone, "the executor of the port has ended")
	}
	if err != nil {
		return nil, err
	}
	client := executorclient.Dial(info.Endpoint, info.Token)
	defer client.Close()
	conn, err := client.DialPort(ctx, port)
	if err == nil {
		if err := t.cfg.Rows.Touch(context.WithoutCancel(ctx), info.ID); err != nil {
			t.cfg.Log.Warn("a visit to an agent's page was not recorded", "executor", info.ID, "err", err)
		}
	}
	return conn, err
}
