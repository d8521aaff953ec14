package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/thread"
	"go.uber.org/goleak"
)

var binary string

func TestMain(m *testing.M) {
	var err error
	if binary, err = lab.BuiltThole(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var me = thole.LocalActor

// shelf stands in for the object store behind the Workspaces port: it keeps what
// was synced as plain copies and can be made to fail.
type shelf struct {
	dir string

	mu       sync.Mutex
	fail     error
	synced   []string // reasons
	restored int
}

func (s *shelf) Restore(_ context.Context, t dispatch.ExecutorWorkspace) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restored++
	for dir, saved := range s.places(t) {
		if _, err := os.Stat(saved); err != nil {
			return nil
		}
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(saved))); err != nil {
			return err
		}
	}
	return nil
}

// places are where an executor has the files of a thread, and where they are kept.
func (s *shelf) places(t dispatch.ExecutorWorkspace) map[string]string {
	saved := filepath.Join(s.dir, string(t.Thread.ID))
	return map[string]string{t.Dir: saved, t.Data: saved + "-data"}
}
func (s *shelf) Link(context.Context, dispatch.ExecutorWorkspace) error     { return nil }
func (s *shelf) Validate(context.Context, dispatch.ExecutorWorkspace) error { return nil }
func (s *shelf) Verify(context.Context, dispatch.ExecutorWorkspace, string) error {
	return nil
}
func (s *shelf) Away() error { return nil }

func (s *shelf) Sync(_ context.Context, t dispatch.ExecutorWorkspace, reason string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = append(s.synced, reason)
	if s.fail != nil {
		return "", s.fail
	}
	for dir, saved := range s.places(t) {
		if err := errors.Join(os.RemoveAll(saved), os.CopyFS(saved, os.DirFS(dir))); err != nil {
			return "", err
		}
	}
	return "snap", nil
}

func (s *shelf) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

type noCredentials struct{}

func (noCredentials) For(context.Context, provider.For) (provider.Grant, error) {
	return provider.Grant{}, nil
}

// rig is one process's worth of pipeline: machine, dispatcher, local executors.
type rig struct {
	*thread.Machine
	t      testing.TB
	db     *store.DB
	disp   *dispatch.Dispatcher
	driver *local.Driver
	shelf  *shelf
	root   string
	halt   func()
}

type world struct {
	root  string
	shelf *shelf
}

func newWorld(t testing.TB) *world {
	t.Helper()
	root, err := os.MkdirTemp("", "dp") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	w := &world{root: root, shelf: &shelf{dir: filepath.Join(root, "shelf")}}
	t.Cleanup(func() {
		d := local.New(local.Config{Root: filepath.Join(root, "x"), Binary: binary})
		list, err := d.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, info := range list {
			if err := d.Remove(context.Background(), info.ID); err != nil {
				t.Error(err)
			}
		}
		os.RemoveAll(root)
	})
	return w
}

func (w *world) rig(t testing.TB, db *store.DB, change ...func(*dispatch.Config)) *rig {
	t.Helper()
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	driver := local.New(local.Config{Root: filepath.Join(w.root, "x"), Binary: binary})
	cfg := dispatch.Config{
		Owner: t.Name(), Queue: db.Queue(), Threads: m, Rows: db.Executors(), Driver: driver, Workspaces: w.shelf, Credentials: noCredentials{},
		Info:  func(context.Context, string) provider.Info { return testprovider.New().Probe(context.Background()) },
		Lease: 2 * time.Second, StartsPerSec: 1000, Limits: queue.Limits{Total: 16}, SweepEvery: time.Hour,
	}
	if testing.Verbose() {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	for _, c := range change {
		c(&cfg)
	}
	r := &rig{Machine: m, t: t, db: db, disp: dispatch.New(cfg), driver: driver, shelf: w.shelf, root: w.root}
	m.Attach(r.disp)
	if err := m.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := r.disp.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	stopped := false
	r.halt = func() {
		if stopped {
			return
		}
		stopped = true
		if err := errors.Join(r.disp.Stop(context.Background()), m.Close(context.Background())); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.halt)
	return r
}

func (r *rig) thread() thole.ThreadID {
	r.t.Helper()
	th, err := r.Create(context.Background(), me, thread.Create{Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		r.t.Fatal(err)
	}
	return th.ID
}

func (r *rig) start(id thole.ThreadID, prompt string) thole.TurnID {
	r.t.Helper()
	turn, err := r.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Text(prompt)})
	if err != nil {
		r.t.Fatal(err)
	}
	return turn.ID
}

// row is the executor of a thread.
func (r *rig) row(id thole.ThreadID) executor.Row {
	r.t.Helper()
	row, err := r.db.Executors().OfThread(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return row
}

// client speaks with a thread's executord as a dispatcher does.
func (r *rig) client(id thole.ThreadID) *executorclient.Client {
	r.t.Helper()
	info, err := r.driver.Inspect(context.Background(), r.row(id).ID)
	if err != nil {
		r.t.Fatal(err)
	}
	c := executorclient.Dial(info.Endpoint, info.Token)
	r.t.Cleanup(c.Close)
	return c
}

// until follows the thread until an event is the wanted one.
func (r *rig) until(id thole.ThreadID, want func(event.Event) bool) event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	zero := uint64(0)
	sub, err := r.Subscribe(ctx, me, id, thread.SubscribeOptions{After: &zero})
	if err != nil {
		r.t.Fatal(err)
	}
	defer sub.Close()
	for {
		select {
		case batch, ok := <-sub.Events:
			if !ok {
				r.t.Fatalf("subscription ended: %v", sub.Err())
			}
			for _, ev := range batch.Events {
				if want(ev) {
					return ev
				}
			}
		case <-ctx.Done():
			turns, _ := r.Turns(context.Background(), me, id, thread.PageParams{Limit: 10})
			r.t.Fatalf("nothing came; turns: %+v", turns.Items)
		}
	}
}

func kind(turn thole.TurnID, k event.Kind) func(event.Event) bool {
	return func(e event.Event) bool { return e.Kind == k && e.Turn == turn }
}

// settled waits until the pipeline is done with a turn.
func (r *rig) settled(id thole.ThreadID, turn thole.TurnID) fold.Turn {
	r.t.Helper()
	r.until(id, func(e event.Event) bool {
		return e.Turn == turn && e.Kind == event.TurnPhase && e.Data.Phase.Terminal()
	})
	return r.turn(id, turn)
}

func (r *rig) turn(id thole.ThreadID, turn thole.TurnID) fold.Turn {
	r.t.Helper()
	got, err := r.Turn(context.Background(), me, id, turn)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *rig) said(id thole.ThreadID, turn thole.TurnID) string {
	r.t.Helper()
	page, err := r.Items(context.Background(), me, id, turn, thread.PageParams{Limit: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	var b strings.Builder
	for _, it := range page.Items {
		if it.Item.Kind == event.ItemMessage {
			b.WriteString(it.Item.Text + "\n")
		}
		if it.Item.Command != nil {
			b.WriteString(it.Item.Command.Output + "\n")
		}
	}
	return b.String()
}
