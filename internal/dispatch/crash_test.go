package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/system"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/thread"
)

const (
	killedThread = thole.ThreadID("01890000-0000-7000-8000-000000000001")
	killedTurn   = thole.TurnID("01890000-0000-7000-8000-000000000002")
	laterTurn    = thole.TurnID("01890000-0000-7000-8000-000000000003")
)

// home is where a killed process's executors are: the crash directory is too long
// for sockets, so it only names it.
func home(dir string) (string, error) {
	name := filepath.Join(dir, "executors")
	if data, err := os.ReadFile(name); err == nil {
		return string(data), nil
	}
	root, err := os.MkdirTemp("", "dk")
	if err != nil {
		return "", err
	}
	return root, os.WriteFile(name, []byte(root), 0o600)
}

// envCluster is the DSN of a PostgreSQL that the killed process and its successor
// share; empty: SQLite in their directory.
const envCluster = "THOLE_DISPATCH_CRASH_DSN"

// database is the one of a crash directory, made by the first who asks.
func database(dir, cluster string) (string, error) {
	name := filepath.Join(dir, "dsn")
	if dsn, err := os.ReadFile(name); err == nil {
		return string(dsn), nil
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, cluster)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	fresh := "k" + strings.ReplaceAll(thole.NewID[string](time.Now()), "-", "")
	if _, err := conn.Exec(ctx, "create database "+fresh); err != nil {
		return "", err
	}
	u, err := url.Parse(cluster)
	if err != nil {
		return "", err
	}
	u.Path = "/" + fresh
	return u.String(), os.WriteFile(name, []byte(u.String()), 0o600)
}

// pipeline is a rig without a test around it.
type pipeline struct {
	db     *store.DB
	m      *thread.Machine
	d      *dispatch.Dispatcher
	driver *local.Driver
	models *system.Gateway // nil: the agent needs none
	mute   func() bool     // true: asks stay open for now
}

// kept is the store of a crash directory.
func kept(dir string, hook sqldb.Hook) (cfg sqldb.Config, err error) {
	cfg = sqldb.Config{Path: filepath.Join(dir, "home", "thole.db"), Hook: hook}
	if cluster := os.Getenv(envCluster); cluster != "" {
		cfg.Path = ""
		cfg.DSN, err = database(dir, cluster)
	}
	return cfg, err
}

// openPipeline opens the pipeline of a directory; its agents reach a scripted model
// through a gateway if there is one.
func openPipeline(dir string, at sqldb.Config, model string, change ...func(*dispatch.Config, *local.Config)) (*pipeline, error) {
	root, err := home(dir)
	if err != nil {
		return nil, err
	}
	db, err := storetest.OpenAt(context.Background(), at)
	if err != nil {
		return nil, err
	}
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		return nil, err
	}
	executors := local.Config{Root: root, Binary: binary}
	cfg := dispatch.Config{
		Owner: "crash", Queue: db.Queue(), Threads: m, Rows: db.Executors(),
		Workspaces: &shelf{dir: filepath.Join(root, "shelf")}, Credentials: noCredentials{},
		Info:  func(context.Context, string) provider.Info { return testprovider.New().Probe(context.Background()) },
		Lease: 500 * time.Millisecond, StartsPerSec: 1000, Limits: queue.Limits{Total: 4}, SweepEvery: time.Hour, RemoveAfter: time.Hour,
	}
	p := &pipeline{db: db, m: m}
	if model != "" {
		quiet := slog.New(slog.DiscardHandler)
		if p.models, cfg.Credentials, err = system.DemoGateway(root, db, books(db), model, nil, nil, quiet); err == nil {
			err = p.models.Start(context.Background())
		}
		if err != nil {
			return nil, err
		}
		executors.Gateway = system.GatewaySocket(root)
	}
	for _, c := range change {
		c(&cfg, &executors)
	}
	p.driver = local.New(executors)
	cfg.Driver = p.driver
	p.d = dispatch.New(cfg)
	m.Attach(p.d)
	return p, errors.Join(m.Start(context.Background()), p.d.Start(context.Background()))
}

// end stops a pipeline and leaves nothing of it.
func (p *pipeline) end(t *testing.T, dir string) {
	ctx := context.Background()
	err := errors.Join(p.d.Stop(ctx), p.m.Close(ctx))
	if p.models != nil {
		err = errors.Join(err, p.models.Stop(ctx))
	}
	if err := errors.Join(err, p.db.Close()); err != nil {
		t.Error(err)
	}
	list, err := p.driver.List(ctx)
	if err != nil {
		t.Error(err)
	}
	for _, info := range list {
		if err := p.driver.Remove(ctx, info.ID); err != nil {
			t.Error(err)
		}
	}
	if root, err := home(dir); err == nil {
		os.RemoveAll(root)
	}
}

// turn waits for a turn to be in a state, answering the question it may ask.
func (p *pipeline) turn(id thole.TurnID, done func(fold.Turn) bool) (fold.Turn, error) {
	deadline := time.Now().Add(40 * time.Second)
	for {
		t, err := p.m.Turn(context.Background(), me, killedThread, id)
		if err != nil || done(t) {
			return t, err
		}
		asks, err := p.m.Asks(context.Background(), me, killedThread, true)
		if err != nil {
			return t, err
		}
		for _, a := range asks {
			if p.mute != nil && p.mute() {
				break
			}
			_, err := p.m.Answer(context.Background(), me, killedThread, a.Ask.ID, event.Answer{Answers: map[string][]string{a.Ask.Questions[0].ID: {"yes"}}})
			if err != nil && thole.CodeOf(err) != thole.CodeConflict {
				return t, err
			}
		}
		if time.Now().After(deadline) {
			return t, errors.New("turn " + string(id) + " is stuck in " + string(t.Phase))
		}
		<-time.After(2 * time.Millisecond)
	}
}

func settledTurn(t fold.Turn) bool { return t.Phase.Terminal() }

// killWork runs two turns with a stop in between.
func killWork(w *crash.Work) error {
	at, err := kept(w.Dir, w.Hook)
	if err != nil {
		return err
	}
	p, err := openPipeline(w.Dir, at, "")
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := p.m.Create(ctx, me, thread.Create{ID: killedThread, Owner: thole.DefaultOwner, Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}}); err != nil {
		return err
	}
	run := func(id thole.TurnID, prompt string) error {
		if _, err := p.m.StartTurn(ctx, me, thread.StartTurn{Thread: killedThread, ID: id, Input: thole.Text(prompt)}); err != nil {
			return err
		}
		w.Ack(string(id))
		_, err := p.turn(id, settledTurn)
		return err
	}
	if err := run(killedTurn, "sim: say one ;; run echo x >> f ;; ask Go on? | yes | no ;; say two"); err != nil {
		return err
	}
	if err := p.d.Close(ctx, killedThread); err != nil {
		return err
	}
	for {
		row, err := p.db.Executors().OfThread(ctx, killedThread)
		if err != nil {
			return err
		}
		if row.State == executor.RowStopped {
			break
		}
		<-time.After(2 * time.Millisecond)
	}
	return run(laterTurn, "sim: run cat f")
}

// A dispatcher killed at any durable step is replaced: every acknowledged turn
// completes, once, with nothing lost and nothing said or done twice.
func TestADispatcherKilledAnywhereIsReplaced(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { killedAnywhere(t, 13) })
	t.Run("postgres", func(t *testing.T) {
		if os.Getenv(envCluster) == "" { // else this is the child
			t.Setenv(envCluster, lab.Postgres(t))
		}
		killedAnywhere(t, 13)
	})
}

func killedAnywhere(t *testing.T, every int) {
	crash.Sample(t, every, killWork, func(t *testing.T, dir string, acked []string, killed string) {
		at, err := kept(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := openPipeline(dir, at, "")
		if err != nil {
			t.Fatal(err)
		}
		defer p.end(t, dir)
		for _, ack := range acked {
			turn, err := p.turn(thole.TurnID(ack), settledTurn)
			if err != nil {
				t.Fatal(err)
			}
			if turn.Outcome != thole.OutcomeCompleted {
				t.Fatalf("turn %+v, error %+v", turn, turn.Error)
			}
		}
		if len(acked) == 0 {
			return
		}
		r := &rig{Machine: p.m, t: t}
		if said := r.said(killedThread, killedTurn); strings.Count(said, "one\n") != 1 || strings.Count(said, "two\n") != 1 {
			t.Errorf("said %q", said)
		}
		if len(acked) > 1 {
			if said := r.said(killedThread, laterTurn); strings.Count(said, "x") != 1 {
				t.Errorf("the file holds %q", said)
			}
		}
	})
}
