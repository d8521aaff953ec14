//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/transport/unix"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/app"
)

// TestTurnStart measures turn/start written to turn/started read, on an idle
// loaded thread. Ours has the turn on disk by then.
func TestTurnStart(t *testing.T) {
	theirs := codexSide(t)
	ours := ourSide(t)
	n := 15
	if Long() {
		n = 100
	}
	p50 := func(s *contractSide) func() float64 {
		return func() float64 {
			all := make([]time.Duration, n)
			for i := range all {
				all[i] = s.turn("sim: say ok")
			}
			slices.Sort(all)
			return float64(all[n/2].Microseconds())
		}
	}
	Case{
		Name: "App server: turn/start to turn/started, p50", Unit: "µs", Peer: "codex app-server " + lab.CodexVersion,
		Promise: 0.5, Loose: 2, Ours: p50(ours), Theirs: p50(theirs),
		Note: "One client over a unix socket on each server. The thole figure includes the durable commit of the turn. " + pathNote,
	}.Run(t)
}

// TestResumeLongThread measures a resume with the first page of items.
func TestResumeLongThread(t *testing.T) {
	lab.Codex(t)
	items := 200
	if Long() {
		items = 10_000
	}
	home, thread := longCodex(t, items)
	theirs, _ := startCodex(t, home)
	ours := ourSide(t)
	ours.fill(items)
	open := func(addr, thread string) func() float64 {
		hold := hello(t, addr) // the thread stays loaded on both
		t.Cleanup(hold.Close)
		firstPage(t, hold, thread)
		return func() float64 {
			c := hello(t, addr)
			defer c.Close()
			from := time.Now()
			firstPage(t, c, thread)
			return float64(time.Since(from).Microseconds())
		}
	}
	Case{
		Name: "App server: resume of a long thread, first page", Unit: "µs", Peer: "codex app-server " + lab.CodexVersion,
		Promise: 0.3, Loose: 3, Ours: open(ours.addr, ours.thread), Theirs: open(theirs, thread),
		Note: "thread/resume with excludeTurns and thread/items/list of 100 items, on a loaded thread of 10,000 items in the long form. " + copiesNote,
	}.Run(t)
}

// TestFanOut streams one turn to many connections and compares the cost of a
// delivered event with a bare broadcast of frames of the same number and size.
func TestFanOut(t *testing.T) {
	conns, words := 50, 200
	if Long() {
		conns, words = 1000, 300
	}
	Case{
		Name: "App server: delivery to many connections", Unit: "µs/event", Peer: "bare WebSocket broadcast",
		Promise: 3, Loose: 8, Ours: func() float64 { return fanOut(t, conns, words) }, Theirs: func() float64 { return broadcast(t, conns, words) },
		Note: "1,000 connections on one streaming thread in the long form, 50 in the short one. Every connection receives every event; readers run in the same process on both sides. Deltas that wait together are merged and then count as one event.",
	}.Run(t)
}

func fanOut(t *testing.T, conns, words int) float64 {
	t.Helper()
	rig := tholetest.New(t)
	defer rig.Stop()
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "f.sock"), "")
	s := newSide(t, addr, 0)
	var events atomic.Int64
	var done sync.WaitGroup
	heard := make([][]json.RawMessage, conns) // read when the clock has stopped
	for i := range conns {
		done.Add(1)
		c := s.dial(func(n appclient.Notification) {
			events.Add(1)
			switch n.Method {
			case "item/agentMessage/delta":
				heard[i] = append(heard[i], n.Params)
			case "turn/completed":
				done.Done()
			}
		})
		defer c.Close()
		if _, err := c.Resume(bg(t), app.ThreadResumeParams{ThreadID: s.thread, ExcludeTurns: true}); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.TrimSpace(strings.Repeat("word ", words))
	runtime.GC()
	before := cpu()
	if _, err := s.c.StartTurn(bg(t), app.TurnStartParams{ThreadID: s.thread, Input: appclient.Text("sim: slow 2ms ;; say " + text)}); err != nil {
		t.Fatal(err)
	}
	done.Wait()
	cost := float64(cpu()-before) / 1e3 / float64(events.Load())
	for i, list := range heard {
		var whole strings.Builder
		for _, raw := range list {
			var d struct{ Delta string }
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			whole.WriteString(d.Delta)
		}
		if whole.String() != text {
			t.Fatalf("connection %d heard %d of %d bytes", i, whole.Len(), len(text))
		}
	}
	return cost
}

// broadcast writes as many frames of a delta's size to as many connections, one
// after the other, as the least that a fan-out can do.
func broadcast(t *testing.T, conns, words int) float64 {
	t.Helper()
	l, err := unix.Listen(filepath.Join(t.TempDir(), "b.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	streams := make(chan jsonrpc.Stream, conns)
	srv := ws.NewServer(ws.Options{}, func(ctx context.Context, s jsonrpc.Stream) {
		streams <- s
		_, _ = s.Read(ctx) // until the client says goodbye
	})
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(ctx, l) }()
	defer func() { stop(); <-served }()
	var got sync.WaitGroup
	for range conns {
		c, err := ws.Dial(ctx, "unix://"+l.Addr().String(), ws.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close("")
		got.Go(func() {
			for range words {
				if _, err := c.Read(ctx); err != nil {
					return
				}
			}
		})
	}
	all := make([]jsonrpc.Stream, conns)
	for i := range all {
		all[i] = <-streams
	}
	frame := make([]byte, 260) // a delta's
	for i := range frame {
		frame[i] = 'x'
	}
	runtime.GC()
	before := cpu()
	for range words {
		for _, s := range all {
			if err := s.Write(ctx, frame); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond) // the same pace as the turn's
	}
	got.Wait()
	return float64(cpu()-before) / 1e3 / float64(conns*words)
}

// TestRejoin lets many clients resume one long thread at once and compares the time
// until all have their first page with that of one after the other.
func TestRejoin(t *testing.T) {
	items, clients := 200, 20
	if Long() {
		items, clients = 10_000, 100
	}
	s := ourSide(t)
	s.fill(items)
	all := func(together bool) func() float64 {
		return func() float64 {
			conns := make([]*appclient.Client, clients)
			for i := range conns {
				conns[i] = s.dial(nil)
			}
			var wg sync.WaitGroup
			from := time.Now()
			for _, c := range conns {
				if !together {
					firstPage(t, c, s.thread)
					continue
				}
				wg.Go(func() { firstPage(t, c, s.thread) })
			}
			wg.Wait()
			took := time.Since(from)
			for _, c := range conns {
				if c.Err() != nil {
					t.Errorf("a client was dropped: %v", c.Err())
				}
				c.Close()
			}
			return float64(took.Microseconds()) / 1e3
		}
	}
	Case{
		Name: "App server: many clients rejoin a long thread at once", Unit: "ms", Peer: "the same clients one after the other",
		Promise: 1.2, Loose: 6, Ours: all(true), Theirs: all(false),
		Note: "100 clients on 10,000 items in the long form, each thread/resume and the first 100 items; none may be dropped. The bound is our own.",
	}.Run(t)
}
