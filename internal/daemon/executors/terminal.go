package executors

import (
	"context"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// TerminalPath is where the home's socket passes a client on to a terminal in the
// executor of a thread. The token stays with the owner.
func TerminalPath(id thole.ThreadID) string { return "/threads/" + string(id) + "/terminal" }

// Terminal passes a WebSocket on to a thread's executor. It looks into none of the
// messages. What a human does there is activity: the executor is kept, and its files
// are synced after it.
func (t *Service) Terminal(w http.ResponseWriter, r *http.Request) {
	// The home's socket is the way in: its peer is the user of this machine.
	id := thole.ThreadID(r.PathValue("thread"))
	_, err := t.cfg.Threads.Get(authz.Doing(r.Context(), authz.OpenTerminal), thole.LocalActor, id)
	var at reached
	if err == nil {
		at, err = t.running(r.Context(), id)
	}
	if err == nil {
		defer at.Close()
	}
	ctx := audit.With(r.Context(), audit.Source{Actor: thole.LocalActor})
	opened := audit.Entry{Action: "terminal.open", Kind: "thread", ID: string(id), After: audit.Facts(map[string]string{"executor": string(at.id)})}
	if err == nil {
		err = t.cfg.Audit.Record(ctx, opened)
	} else if thole.CodeOf(err) == thole.CodeForbidden {
		opened.Reason, opened.After = err.Error(), ""
		t.cfg.Audit.Refused(ctx, opened)
	}
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	began := time.Now()
	defer func() {
		closed := audit.Entry{Action: "terminal.close", Kind: "thread", ID: string(id), After: audit.Facts(map[string]any{"executor": at.id, "seconds": int(time.Since(began).Seconds())})}
		if err := t.cfg.Audit.Record(context.WithoutCancel(ctx), closed); err != nil {
			t.cfg.Log.Error("the end of a terminal was not recorded", "executor", at.id, "err", err)
		}
	}()
	t.terminals.Add(1)
	defer t.terminals.Add(-1)
	touch := func() {
		if err := t.cfg.Rows.Touch(context.WithoutCancel(r.Context()), at.id); err != nil {
			t.cfg.Log.Warn("a terminal's activity was not recorded", "executor", at.id, "err", err)
		}
	}
	touch()
	defer touch()
	at.PassTerminal(w, r)
}

// reach returns a client of an executor, nil if it does not run.
func (t *Service) reach(ctx context.Context, row executor.Row) (*executorclient.Client, error) {
	if t.cfg.Elsewhere != nil {
		if client, there, err := t.cfg.Elsewhere(ctx, row); there || err != nil {
			return client, err
		}
	}
	info, err := t.cfg.Driver.Inspect(ctx, row.ID)
	if err != nil || info.State != executor.Running {
		return nil, err
	}
	return executorclient.Dial(info.Endpoint, info.Token), nil
}

// reached is an executor that runs, here or on another server's machine, and a client of it.
type reached struct {
	*executorclient.Client
	id thole.ExecutorID
}

// running finds the executor of a thread in which a human can work: it runs, and the
// files are in their places. Who gets it closes it.
func (t *Service) running(ctx context.Context, id thole.ThreadID) (reached, error) {
	rows, err := t.cfg.Rows.Of(ctx, id)
	if err != nil {
		return reached{}, err
	}
	for _, row := range rows {
		if row.State != executor.RowRunning || !row.Restored {
			continue
		}
		if client, err := t.reach(ctx, row); client != nil || err != nil {
			return reached{client, row.ID}, err
		}
	}
	return reached{}, thole.Errorf(thole.CodeConflict, "thread %s has no running executor", id).
		WithHint("a message starts one: thole thread send %s TEXT", id)
}
