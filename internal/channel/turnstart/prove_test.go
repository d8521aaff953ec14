package turnstart_test

import (
	"bytes"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
)

// A queue is tried before it is relied on, once, without asking the model and
// without leaving a conversation behind. One that lies is not used.
func TestTheQueueIsTriedFirst(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	p := newProxy(t, c.sock, cut{})
	r := c.rig(t, p)
	q := channel.Query{User: thole.LocalUser, Endpoint: r.home, Thread: thole.ThreadID(r.thread)}
	probe := func() channel.Readiness {
		t.Helper()
		ch := turnstart.New(r.s, nil)
		defer ch.Close()
		ch.Impatient()
		ch.ServerOf(func() int { return c.pid })
		got, err := ch.Probe(bg, q)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	var left struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
	} // by a deliverer that was killed
	died := c.dial()
	died.must("thread/start", map[string]any{"cwd": c.work, "threadSource": "thole_probe"}, &left)
	died.thread = left.Thread.ID
	died.must("thread/shellCommand", map[string]any{"command": "sleep 60"}, nil)
	died.Close()
	asked := len(c.sim.Requests())
	if got := probe(); got.Verdict != channel.Now {
		t.Fatalf("%+v", got)
	}
	p.mu.Lock()
	p.rewrite = func(b []byte) { copy(b, bytes.ReplaceAll(b, []byte(`"deleted":true`), []byte(`"deleted":null`))) }
	p.mu.Unlock()
	if got := probe(); got.Verdict != channel.NotNow || !strings.Contains(got.Reason, "cannot be taken back") {
		t.Errorf("a queue that deletes nothing: %+v", got)
	}
	if n := len(c.sim.Requests()) - asked; n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := r.Call(bg, "thread/list", map[string]any{"limit": 100}, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Data) != 1 || list.Data[0].ID != r.thread {
		t.Errorf("the user's conversations are %+v", list.Data)
	}
	if err := r.Call(bg, "thread/read", map[string]any{"threadId": left.Thread.ID}, nil); err == nil {
		t.Error("what an earlier trial left is still there")
	}
}
