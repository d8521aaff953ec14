package system

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/message"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/daemon/supervise"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/threadjob"
	"github.com/tholehq/thole/internal/vault"
)

// deliveries is the delivery part of the graph.
type deliveries struct {
	meter   *meter
	machine *delivery.Machine
	keeper  *artifact.Keeper
	runs    *supervise.Runs
	inside  *threadjob.Runner // commands in the boxes of threads
	compose *message.Writer
	keep    time.Duration // of ended jobs
	db      *store.DB
	access  delivery.Access
	scope   executor.Scope
	log     *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed at the next commit
	wake    func(*delivery.Candidate)

	unheard func() // ends watch
}

func newDeliveries(cfg *config.Config, db *store.DB, access delivery.Access, m *meter, log *slog.Logger) (_ *deliveries, err error) {
	d := &deliveries{db: db, access: access, keep: cfg.Delivery.Keep, scope: executor.Scope(cfg.Executor.Scope), meter: m, changed: make(chan struct{}), wake: func(*delivery.Candidate) {}, log: log}
	if d.keeper, err = artifact.New(artifact.Config{Dir: filepath.Join(cfg.Home, "artifacts"), Store: db.Artifacts()}); err != nil {
		return nil, err
	}
	if d.compose, err = messages(cfg.Delivery.Template, cfg.Delivery.MessageBytes); err != nil {
		return nil, err
	}
	d.machine = delivery.New(delivery.Config{Store: db.Delivery(), Limits: limits(cfg.Delivery), Access: access, Wake: d.notify, Held: m.held, Automation: automation})
	d.runs, err = supervise.NewRuns(cfg.Home, d.machine, d.keeper, sqldb.OutcomeUnknown)
	return d, err
}

// newDriver makes what delivers by these channels, and is woken by every commit.
// Of a store with several servers each has the attempts that it began, or whose server gave
// them up.
func (d *deliveries) newDriver(by map[thole.Target]channel.Channel, heartbeats driver.Heartbeats, member *roster.Member) *driver.Driver {
	holder := "pid-" + strconv.Itoa(os.Getpid())
	if member != nil {
		holder = member.Self.ID + " " + member.Self.Run
	}
	out := driver.New(driver.Config{
		Machine: d.machine, Channels: by, Heartbeats: heartbeats, Compose: d.compose.Compose, Holder: holder, Sole: member == nil, Meter: d.meter, Log: d.log,
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake = out.Wake
	return out
}

// watch hears of changes by other servers.
func (d *deliveries) watch(context.Context) error {
	d.unheard = d.db.Delivery().Watch(func() { d.notify(nil) })
	return nil
}

func (d *deliveries) unwatch(context.Context) error {
	d.unheard()
	return nil
}

// notify wakes the driver and everyone who waits for a change.
func (d *deliveries) notify(ready *delivery.Candidate) {
	d.mu.Lock()
	close(d.changed)
	d.changed = make(chan struct{})
	wake := d.wake
	d.mu.Unlock()
	wake(ready)
}

func (d *deliveries) nextChange() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *deliveries) service(by *driver.Driver, secrets *vault.Vault, trail *audit.Log) *daemon.Delivery {
	return &daemon.Delivery{
		Machine: d.machine, Keeper: d.keeper, Changed: d.nextChange, Forecast: forecast(by), Known: by.Known, Inside: d.scope == executor.ScopeThread,
		Cancelled: d.cancelled, Output: d.runs.Output, Unsure: sqldb.OutcomeUnknown, Now: time.Now,
		Check: func(ctx context.Context) (wire.Checked, error) {
			found, err := d.db.CheckDelivery(ctx)
			if err != nil {
				return wire.Checked{}, err
			}
			broken, notes, err := checkVault(ctx, secrets)
			if err != nil {
				return wire.Checked{}, err
			}
			report, err := trail.Verify(ctx)
			for _, f := range report.Faults {
				broken = append(broken, wire.Violation{Rule: "the audit chain is whole", Row: fmt.Sprintf("%d: %s", f.Seq, f.What)})
			}
			for _, v := range found {
				broken = append(broken, wire.Violation{Rule: v.Rule, Row: v.Row})
			}
			return wire.Checked{Violations: broken, Notes: notes}, err
		},
	}
}

// cancelled ends the command of a job wherever it runs.
func (d *deliveries) cancelled(id thole.JobID) {
	d.runs.Cancel(id)
	d.inside.Cancel(id)
}

// runInside makes what runs commands in the boxes of threads.
func (d *deliveries) runInside(home, engine string, threads *thread.Machine, dispatcher *dispatch.Dispatcher, rows executor.Rows, driver executor.Driver, asked *executors.Service) (err error) {
	d.inside, err = threadjob.New(threadjob.Config{
		Machine: d.machine, Keeper: d.keeper, Threads: threads, Rows: rows, Driver: driver, Engine: engine, Ready: asked.Ready, Sync: dispatcher.Sync,
		Changed: d.nextChange, Dir: filepath.Join(home, "inside"), Unsure: sqldb.OutcomeUnknown, Log: d.log,
	})
	return err
}

// forecast is the driver's, in the words of the wire.
func forecast(by *driver.Driver) func(context.Context, delivery.Address, thole.Target, thole.DeliveryPolicy) wire.Forecast {
	return func(ctx context.Context, a delivery.Address, t thole.Target, p thole.DeliveryPolicy) wire.Forecast {
		return forecastView(by.Forecast(ctx, a, t, p, nil))
	}
}

func forecastView(f driver.Forecast) wire.Forecast {
	out := wire.Forecast{Automatic: f.Automatic}
	for _, r := range f.Reasons {
		out.Reasons, out.Codes = append(out.Reasons, r.Text), append(out.Codes, string(r.Reason))
	}
	return out
}

func (d *deliveries) sweep(ctx context.Context) error {
	if _, err := d.machine.Sweep(ctx); err != nil {
		return err
	}
	if err := d.collect(ctx); err != nil {
		return err
	}
	return d.runs.Sweep(ctx)
}

// collect removes what retention lets go: result files first, then the jobs without one.
func (d *deliveries) collect(ctx context.Context) error {
	if _, err := d.keeper.Sweep(ctx); err != nil {
		return err
	}
	_, err := d.machine.Forget(ctx, d.keep)
	return err
}

// sweepAlways repeats what the driver's own passes do not cover.
func (d *deliveries) sweepAlways(ctx context.Context) {
	t := time.NewTicker(15 * time.Second)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := d.runs.Sweep(ctx)
		if err == nil && n%40 == 0 {
			err = d.collect(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("sweep failed", "err", err)
		}
	}
}

func (d *deliveries) staying(ctx context.Context, by *driver.Driver, idle time.Duration) (string, error) {
	if by.Busy() {
		return "a delivery is under way", nil
	}
	p, err := d.machine.Pending(ctx)
	if err != nil {
		return "", err
	}
	return daemon.Staying(p, time.Now(), idle, by.Serves), nil
}
