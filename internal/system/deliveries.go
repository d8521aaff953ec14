package system

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
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
	db      *store.DB
	scope   executor.Scope
	log     *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed at the next commit
	wake    func(*delivery.Candidate)
}

func newDeliveries(cfg *config.Config, db *store.DB, m *meter, log *slog.Logger) (_ *deliveries, err error) {
	d := &deliveries{db: db, scope: executor.Scope(cfg.Executor.Scope), meter: m, changed: make(chan struct{}), wake: func(*delivery.Candidate) {}, log: log}
	if d.keeper, err = artifact.New(artifact.Config{Dir: filepath.Join(cfg.Home, "artifacts"), Store: db.Artifacts()}); err != nil {
		return nil, err
	}
	if d.compose, err = messages(cfg.Delivery.Template, cfg.Delivery.MessageBytes); err != nil {
		return nil, err
	}
	d.machine = delivery.New(delivery.Config{Store: db.Delivery(), Limits: limits(cfg.Delivery), Wake: d.notify, Held: m.held})
	d.runs, err = supervise.NewRuns(cfg.Home, d.machine, d.keeper, sqldb.OutcomeUnknown)
	return d, err
}

// newDriver makes what delivers by these channels, and is woken by every commit.
func (d *deliveries) newDriver(by map[thole.Target]channel.Channel) *driver.Driver {
	out := driver.New(driver.Config{
		Machine: d.machine, Channels: by, Compose: d.compose.Compose, Holder: "pid-" + strconv.Itoa(os.Getpid()), Sole: true, Meter: d.meter, Log: d.log,
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake = out.Wake
	return out
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

func (d *deliveries) methods(by *driver.Driver, secrets *vault.Vault) map[string]daemon.Method {
	api := &daemon.Delivery{
		Machine: d.machine, Keeper: d.keeper, Changed: d.nextChange, Forecast: forecast(by), Known: by.Known, Inside: d.scope == executor.ScopeThread,
		Cancelled: d.cancelled, Output: d.runs.Output, Unsure: sqldb.OutcomeUnknown, Now: time.Now,
		Check: func(ctx context.Context) (wire.Checked, error) {
			found, err := d.db.CheckDelivery(ctx)
			if err != nil {
				return wire.Checked{}, err
			}
			broken, notes, err := checkVault(ctx, secrets)
			for _, v := range found {
				broken = append(broken, wire.Violation{Rule: v.Rule, Row: v.Row})
			}
			return wire.Checked{Violations: broken, Notes: notes}, err
		},
	}
	return api.Methods()
}

// cancelled ends the command of a job wherever it runs.
func (d *deliveries) cancelled(id thole.JobID) {
	d.runs.Cancel(id)
	d.inside.Cancel(id)
}

// runInside makes what runs commands in the boxes of threads.
func (d *deliveries) runInside(home string, threads *thread.Machine, dispatcher *dispatch.Dispatcher, driver executor.Driver, asked *executors.Service) (err error) {
	d.inside, err = threadjob.New(threadjob.Config{
		Machine: d.machine, Keeper: d.keeper, Threads: threads, Rows: d.db.Executors(), Driver: driver, Ready: asked.Ready, Sync: dispatcher.Sync,
		Changed: d.nextChange, Dir: filepath.Join(home, "inside"), Unsure: sqldb.OutcomeUnknown, Log: d.log,
	})
	return err
}

// forecast asks the channel what it would do now; without one, or where the policy
// is not strictly safe, a human will be needed.
func forecast(by *driver.Driver) func(context.Context, delivery.Address, thole.Target, thole.DeliveryPolicy) wire.Forecast {
	return func(ctx context.Context, a delivery.Address, t thole.Target, p thole.DeliveryPolicy) wire.Forecast {
		f := by.Forecast(ctx, a, t, p)
		return wire.Forecast{Automatic: f.Automatic, Reasons: f.Reasons}
	}
}

func (d *deliveries) sweep(ctx context.Context) error {
	if _, err := d.machine.Sweep(ctx); err != nil {
		return err
	}
	if _, err := d.keeper.Sweep(ctx); err != nil {
		return err
	}
	return d.runs.Sweep(ctx)
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
			_, err = d.keeper.Sweep(ctx)
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
