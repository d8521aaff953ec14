package executors

import (
	"context"
	"net/http"

	thole "github.com/tholehq/thole"
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
	info, err := t.running(r.Context(), thole.ThreadID(r.PathValue("thread")))
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	t.terminals.Add(1)
	defer t.terminals.Add(-1)
	touch := func() {
		if err := t.cfg.Rows.Touch(context.WithoutCancel(r.Context()), info.ID); err != nil {
			t.cfg.Log.Warn("a terminal's activity was not recorded", "executor", info.ID, "err", err)
		}
	}
	touch()
	defer touch()
	client := executorclient.Dial(info.Endpoint, info.Token)
	defer client.Close()
	client.PassTerminal(w, r)
}

// running finds the executor of a thread in which a human can work: it runs, and the
// files are in their places.
func (t *Service) running(ctx context.Context, id thole.ThreadID) (executor.Info, error) {
	if _, err := t.cfg.Threads.Get(ctx, thole.LocalActor, id); err != nil {
		return executor.Info{}, err
	}
	rows, err := t.cfg.Rows.Of(ctx, id)
	if err != nil {
		return executor.Info{}, err
	}
	for _, row := range rows {
		if row.State != executor.RowRunning || !row.Restored {
			continue
		}
		info, err := t.cfg.Driver.Inspect(ctx, row.ID)
		if err == nil && info.State == executor.Running {
			return info, nil
		}
		if err != nil {
			return info, err
		}
	}
	return executor.Info{}, thole.Errorf(thole.CodeConflict, "thread %s has no running executor", id).
		WithHint("a message starts one: thole thread send %s TEXT", id)
}
