package contract

import (
	"context"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

// A turn waits for an answer when its server is killed. The next server has the
// thread, the turn and the ask under the same id, and takes the answer.
func TestAskOutlivesTheServer(t *testing.T) {
	h := home.New(t)
	kill := h.Up()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	asked := make(chan string, 4)
	dial := func() *appclient.Client {
		t.Helper()
		c, err := appclient.Dial(ctx, "unix://"+daemon.Socket(h.Dir), appclient.Options{
			Name: "survivor", Extended: true, OnRequest: func(r *appclient.Request) { asked <- string(r.ID()) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := dial()
	model := "test/script"
	v, err := c.StartThread(ctx, app.ThreadStartParams{Settings: app.Settings{Model: &model}})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := c.StartTurn(ctx, app.TurnStartParams{ThreadID: v.Thread.ID, Input: appclient.Text("sim: run echo survived ;; say it %tool%")})
	if err != nil {
		t.Fatal(err)
	}
	before := <-asked
	kill()
	c.Close()

	h.Up()
	c = dial()
	defer c.Close()
	r, err := c.Resume(ctx, app.ThreadResumeParams{ThreadID: v.Thread.ID})
	if err != nil {
		t.Fatal(err)
	}
	if r.Thread.Status.Type != app.StatusActive || len(r.Thread.Turns) != 1 || r.Thread.Turns[0].ID != turn.ID {
		t.Fatalf("after the restart the thread is %+v", r.Thread)
	}
	if after := <-asked; after != before {
		t.Errorf("the ask is %s, was %s", after, before)
	}
	asks, err := c.Asks(ctx, v.Thread.ID, true)
	if err != nil || len(asks) != 1 {
		t.Fatalf("%d asks: %v", len(asks), err)
	}
	if _, err := c.Answer(ctx, v.Thread.ID, asks[0].ID, app.Answer{Decision: "allow"}); err != nil {
		t.Fatal(err)
	}
	full := app.ItemsFull
	for {
		page, err := c.Turns(ctx, app.TurnsListParams{ThreadID: v.Thread.ID, ItemsView: &full})
		if err != nil {
			t.Fatal(err)
		}
		if last := page.Data[0]; last.Status != app.TurnInProgress {
			items := last.Items
			if last.Status != app.TurnCompleted || items[len(items)-1].Text == nil || *items[len(items)-1].Text != "it survived\n" {
				t.Errorf("the turn ended as %+v", last)
			}
			return
		}
		time.Sleep(50 * time.Millisecond) // the turn is polled, as a reader without a subscription does
	}
}
