package executors

import (
	"context"
	"net"

	thole "github.com/tholehq/thole"
)

// Running finds the executor in which a thread's agent works.
func (t *Service) Running(ctx context.Context, id thole.ThreadID) (thole.ExecutorID, error) {
	at, err := t.running(ctx, id)
	if err != nil {
		return "", err
	}
	at.Close()
	return at.id, nil
}

// DialPort connects to a port in a thread's executor, if that is still the one that is
// named. Who looks at an agent's page uses its executor: it is kept.
func (t *Service) DialPort(ctx context.Context, id thole.ThreadID, in thole.ExecutorID, port uint16) (net.Conn, error) {
	ended := thole.Errorf(thole.CodeGone, "the executor of the port has ended")
	at, err := t.running(ctx, id)
	if thole.CodeOf(err) == thole.CodeConflict {
		return nil, ended
	}
	if err != nil {
		return nil, err
	}
	defer at.Close()
	if at.id != in {
		return nil, ended
	}
	conn, err := at.DialPort(ctx, port)
	if err == nil {
		if err := t.cfg.Rows.Touch(context.WithoutCancel(ctx), in); err != nil {
			t.cfg.Log.Warn("a visit to an agent's page was not recorded", "executor", in, "err", err)
		}
	}
	return conn, err
}
