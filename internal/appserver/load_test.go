package appserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/app"
)

// Many clients rejoin a long thread at once: all are served, none is dropped.
func TestManyRejoinAtOnce(t *testing.T) {
	rig := tholetest.New(t)
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "s.sock"), "")
	w := join(t, rig, `{}`)
	id := w.thread(`{}`)
	for range 4 {
		from := w.len()
		w.turn(id, "sim: say x"+strings.Repeat(" ;; say more", 250))
		w.note(from, "turn/completed")
	}
	from := w.len()
	w.turn(id, "sim: slow 5ms 4 ;; say "+strings.Repeat("and it goes on ", 60))
	w.note(from, "item/agentMessage/delta")
	const clients = 100
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			done := make(chan struct{})
			var once sync.Once
			c, err := appclient.Dial(ctx, addr, appclient.Options{Name: "rejoin", OnNotification: func(n appclient.Notification) {
				if n.Method == "turn/completed" {
					once.Do(func() { close(done) })
				}
			}})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r, err := c.Resume(ctx, app.ThreadResumeParams{ThreadID: id, ExcludeTurns: true})
			if err != nil {
				t.Error(err)
				return
			}
			desc, limit := "desc", 100
			page, err := c.Items(ctx, app.ItemsListParams{ThreadID: id, PageParams: app.PageParams{Cursor: r.ItemsBackwardsCursor, SortDirection: &desc, Limit: &limit}})
			if err != nil || len(page.Data) < 99 { // the item in flight is sent otherwise
				t.Errorf("%d items: %v", len(page.Data), err)
			}
			if r.Thread.Status.Type != app.StatusActive {
				return // the turn had ended already
			}
			select {
			case <-done:
			case <-c.Done():
				t.Errorf("dropped: %v", c.Err())
			case <-ctx.Done():
				t.Error("no end of the turn")
			}
		})
	}
	wg.Wait()
}

// A stalled client costs a bounded amount of memory until it is let go.
func TestStalledClientsAreCheap(t *testing.T) {
	rig := tholetest.New(t)
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "s.sock"), "")
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	const clients = 80 // many, because what the turns themselves cost is shared by all
	driver, err := appclient.Over(ctx, rig.Stream(), appclient.Options{Name: "driver", OptOut: []string{"item/agentMessage/delta", "item/completed", "item/started"}})
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	v, err := driver.StartThread(ctx, app.ThreadStartParams{})
	if err != nil {
		t.Fatal(err)
	}
	before := memory()
	for i := range clients {
		s := stall(t, ctx, addr, v.Thread.ID)
		defer s.Close("")
		_ = i
	}
	idle := (memory() - before) / clients
	peak := int64(0)
	for i := range 60 {
		if _, err := driver.StartTurn(ctx, app.TurnStartParams{ThreadID: v.Thread.ID, Input: appclient.Text(fmt.Sprintf("sim: say %d %s", i, strings.Repeat("z", 8<<10)))}); err != nil {
			t.Fatal(err)
		}
		// The least of three looks: what is alive only while it is being sent is no
		// cost of a client that reads nothing.
		peak = max(peak, (min(memory(), memory(), memory())-before)/clients)
	}
	t.Logf("a connection costs %d KiB idle and %d KiB at most while stalled", idle>>10, peak>>10)
	if peak > 256<<10 {
		t.Errorf("a stalled client costs %d KiB", peak>>10)
	}
}

// A thousand clients follow one thread: each hears all of a turn once, and the thread
// does not wait for them. With THOLE_SOAK there are ten thousand.
func TestThousandSubscribers(t *testing.T) {
	clients := 1000
	if os.Getenv("THOLE_SOAK") != "" {
		clients = 10_000
	}
	b := newBare(t, nil)
	w := b.join()
	id := w.thread(`{}`)
	ref := b.turn(id, "x")
	b.report(ref, begins("one"), grows("one", "some", 0))
	all := make([]*wire, clients)
	var wg sync.WaitGroup
	for part := range 10 {
		wg.Go(func() {
			for n := part; n < clients; n += 10 {
				all[n] = b.join()
				all[n].ok("thread/resume", ofThread(id))
			}
		})
	}
	wg.Wait()
	from := time.Now()
	b.report(ref, grows("one", " text", 4), says("one", "some text"))
	w.within("thread/name/set", ofThread(id, `"name":"name 1"`))
	b.report(ref, ends())
	for n, c := range all {
		c.note(0, "turn/completed")
		v := newView(id)
		for _, m := range c.since(0) {
			if m.Method == "" {
				v.calls["1"], v.calls["2"] = "initialize", "thread/resume"
			}
			if err := v.take(m); err != nil {
				t.Fatalf("client %d: %v", n, err)
			}
		}
		if text := v.done[string(ref.Turn)+"/one"]; text != "some text" || v.name != 1 || v.open != "" {
			t.Fatalf("client %d has %q, name %d, turn %q", n, text, v.name, v.open)
		}
	}
	t.Logf("all of it reached %d clients in %s", clients, time.Since(from))
}

// stall subscribes and then reads nothing more.
func stall(t *testing.T, ctx context.Context, addr, thread string) jsonrpc.Stream {
	t.Helper()
	s, err := ws.Dial(ctx, addr, ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"stalled","version":"1"}}}`,
		`{"id":2,"method":"thread/resume","params":{"threadId":"` + thread + `"}}`,
	} {
		if err := s.Write(ctx, []byte(m)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
