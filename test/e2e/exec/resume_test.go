package exec

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

// A thread that is resumed while another turn of it asks keeps that turn and that ask: this
// program decides only what its own turn asks.
func TestResumeLeavesTheAsksOfOthers(t *testing.T) {
	h := home.New(t)
	h.Up()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked, ended := make(chan *appclient.Request, 8), make(chan string, 8)
	c, err := appclient.Dial(ctx, "unix://"+daemon.Socket(h.Dir), appclient.Options{
		Name: "person", Experimental: true, Extended: true,
		OnRequest: func(r *appclient.Request) { asked <- r },
		OnNotification: func(n appclient.Notification) {
			var p struct{ Turn app.Turn }
			if n.Method == "turn/completed" && json.Unmarshal(n.Params, &p) == nil {
				ended <- p.Turn.Status
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	model, sandbox := "test/script", "read-only"
	v, err := c.StartThread(ctx, app.ThreadStartParams{Settings: app.Settings{Model: &model, ApprovalPolicy: json.RawMessage(`"on-request"`)}, Sandbox: &sandbox})
	if err != nil {
		t.Fatal(err)
	}
	id := v.Thread.ID
	if _, err := c.StartTurn(ctx, app.TurnStartParams{ThreadID: id, Input: appclient.Text("sim: run echo made ;; say it printed %tool%")}); err != nil {
		t.Fatal(err)
	}
	var request *appclient.Request
	select {
	case request = <-asked:
	case <-ctx.Done():
		t.Fatal("nothing was asked")
	}
	out, errs, code := h.Run("exec", "resume", "--sandbox", "workspace-write", "--json", id, "sim: say mine")
	if code == 0 || !strings.Contains(out, "already has an active turn") || !strings.Contains(errs, "thole thread wait "+id) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if waits, err := c.Asks(ctx, id, true); err != nil || len(waits) != 1 {
		t.Errorf("%d asks wait, %v", len(waits), err)
	}
	if queue, err := c.Queue(ctx, id); err != nil || len(queue) > 0 {
		t.Errorf("the message went to %v, %v", queue, err)
	}
	if err := request.Reply(app.ApprovalAnswer{Decision: json.RawMessage(`"accept"`)}); err != nil {
		t.Fatal(err)
	}
	select {
	case status := <-ended:
		if status != app.TurnCompleted {
			t.Errorf("the turn ended as %s", status)
		}
	case <-ctx.Done():
		t.Fatal("the turn did not end")
	}
	if out, errs, code := h.Run("exec", "resume", "--sandbox", "workspace-write", id, "sim: run echo mine ;; say printed %tool%"); code != 0 || !strings.Contains(out, "mine") {
		t.Errorf("of its own turn: exit %d: %s%s", code, out, errs)
	}
}
