package dispatch_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
)

// deaf is a queue whose renewals never come back.
type deaf struct {
	queue.Store
	end chan struct{}
}

func (d deaf) Renew(context.Context, thole.TurnID, string, time.Duration) (bool, error) {
	<-d.end
	return false, errors.New("the database is gone")
}

// slow is a shelf whose restores end only with their lease, the first even later.
type slow struct {
	*shelf
	begun chan int
	lost  chan error
	let   chan struct{}
	n     atomic.Int64
}

func (s *slow) Restore(ctx context.Context, _ dispatch.ExecutorWorkspace) error {
	n := int(s.n.Add(1))
	s.begun <- n
	<-ctx.Done()
	s.lost <- context.Cause(ctx)
	if n == 1 {
		<-s.let
	}
	return context.Cause(ctx)
}

// A worker whose renewal hangs lets go when its lease is over by its own clock,
// and its end does not hide the worker who has the turn after it.
func TestARenewalThatHangsLosesTheLease(t *testing.T) {
	t.Parallel()
	s := &slow{begun: make(chan int, 9), lost: make(chan error, 9), let: make(chan struct{})}
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) {
		c.Queue, c.Lease = deaf{c.Queue, s.let}, 900*time.Millisecond
		s.shelf, c.Workspaces = c.Workspaces.(*shelf), s
	})
	let := sync.OnceFunc(func() { close(s.let) })
	t.Cleanup(let) // before the rig stops, which waits for them
	r.start(r.thread(), "sim: say hi")
	await := func(what string) {
		t.Helper()
		select {
		case n := <-s.begun:
			t.Logf("worker %d restores", n)
		case <-time.After(60 * time.Second):
			t.Fatalf("%s did not restore", what)
		}
	}
	await("the first worker")
	if err := <-s.lost; !errors.Is(err, queue.ErrLeaseLost) {
		t.Fatalf("the first worker was ended by %v", err)
	}
	await("the second worker")
	let()
	for range 20 {
		if !r.disp.Busy() {
			t.Fatal("the second worker is forgotten")
		}
		time.Sleep(5 * time.Millisecond) // for the first worker's end, which nothing signals
	}
}

// cut is a driver whose executors are reached through a proxy that breaks the
// first answer.
type cut struct {
	executor.Driver
	through func(executor.Info) executor.Info
}

func (c cut) Start(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	info, err := c.Driver.Start(ctx, id)
	return c.through(info), err
}

func (c cut) Inspect(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	info, err := c.Driver.Inspect(ctx, id)
	return c.through(info), err
}

// An answer that does not get through is said again.
func TestAnAnswerSurvivesABrokenConnection(t *testing.T) {
	t.Parallel()
	var broken atomic.Int64
	world := newWorld(t)
	r := world.rig(t, storetest.SQLite(t), func(c *dispatch.Config) {
		c.Driver = cut{c.Driver, func(info executor.Info) executor.Info {
			if info.Endpoint == "" {
				return info
			}
			real := strings.TrimPrefix(info.Endpoint, "unix:")
			transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", real)
			}}
			proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "executord"})
			proxy.Transport, proxy.FlushInterval = transport, -1
			ln, err := net.Listen("unix", filepath.Join(world.root, thole.NewID[string](time.Now())[24:]))
			if err != nil {
				t.Error(err)
				return info
			}
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if p := req.URL.Path; p == "/human-loop/reply" && broken.Add(1)%2 == 1 {
					panic(http.ErrAbortHandler)
				}
				proxy.ServeHTTP(w, req)
			})}
			go srv.Serve(ln)
			t.Cleanup(func() { srv.Close(); transport.CloseIdleConnections() })
			info.Endpoint = "unix:" + ln.Addr().String()
			return info
		}}
	})
	id := r.thread()
	turn := r.start(id, "sim: ask Which? | red | blue ;; say ok")
	ask := r.until(id, kind(turn, event.AskRequested)).Data.Ask
	if _, err := r.Answer(t.Context(), me, id, ask.ID, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"blue"}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || broken.Load() < 2 {
		t.Fatalf("%+v after %d calls", got, broken.Load())
	}
}

// standby is a queue whose turns come when the test says.
type standby struct {
	queue.Store
	take func([]queue.Lease)
}

func (s *standby) Standby(_ func() queue.Claim, take func([]queue.Lease)) func() {
	s.take = take
	return func() {}
}

// A turn that comes with its start while the dispatcher stops is given back: it
// must not wait for the end of a lease that nobody holds.
func TestATurnThatComesWithTheStopIsGivenBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := storetest.SQLite(t)
	late := &standby{Store: db.Queue()}
	r := newWorld(t).rig(t, db, func(c *dispatch.Config) { c.Queue = late })
	if err := r.disp.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	turn := r.start(r.thread(), "sim: say hello")
	leases, err := db.Queue().Claim(ctx, queue.Claim{Owner: "test", Token: thole.NewID[string](time.Now()), Max: 1, Lease: time.Hour})
	if err != nil || len(leases) != 1 {
		t.Fatalf("claimed %v, %v", leases, err)
	}
	late.take(leases)
	if row, err := db.Queue().Get(ctx, turn); err != nil || row.State != queue.Ready {
		t.Fatalf("%+v, %v", row, err)
	}
}
