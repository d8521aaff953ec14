package system

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/supervise"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// takeoverWait bounds how long a new owner waits for the old one to finish.
const takeoverWait = time.Minute

// DaemonConfig places a home's daemon.
type DaemonConfig struct {
	Home     string
	Idle     time.Duration // 0: never exits by itself
	Takeover bool          // ask a running owner to hand over
	Limits   delivery.Limits
	Template string // a file that replaces the words around delivered results
	// MessageBytes bounds what a receiving turn reads; 0: the shipped limit.
	MessageBytes int
	Log          *slog.Logger
	// Ready is called with nil when the socket answers.
	Ready func(error)
	// Hook observes durable steps, for crash tests.
	Hook  sqldb.Hook
	meter *meter
	// Role is "daemon" or "up".
	Role string
	// Build makes the rest of the graph on the open store; nil: delivery only.
	Build func(ctx context.Context, db *store.DB, d *deliveries) (*rest, error)
}

// rest is what of the graph is not delivery.
type rest struct {
	ready    func() // called when the home's socket answers
	methods  map[string]daemon.Method
	channels map[thole.Target]channel.Channel
	attach   func(ctx context.Context, s jsonrpc.Stream)
	beside   *http.ServeMux // on the home's socket
	staying  func() string
	stop     func(ctx context.Context) error
}

// RunDaemon owns the home until it is idle, stopped or handed over.
func RunDaemon(ctx context.Context, cfg DaemonConfig) (reason daemon.StopReason, err error) {
	ready := sync.OnceFunc(func() {
		if cfg.Ready != nil {
			cfg.Ready(err)
		}
	})
	defer ready()
	if cfg.meter == nil {
		cfg.meter = newMeter(nil)
	}
	wait := time.Duration(0)
	if cfg.Takeover {
		wait = takeoverWait
		old := daemonclient.Client{Home: cfg.Home, NoStart: true, Wait: true}
		ask := wire.StopParams{Handover: true}
		if cfg.Role == "up" {
			ask.Unless = cfg.Role
		}
		if err := old.Call(ctx, wire.DaemonStop, ask, nil); err != nil && !errors.Is(err, daemonclient.ErrNobody) {
			return "", err
		}
	}
	owner, err := daemon.Own(ctx, cfg.Home, wait)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, owner.Release()) }()
	db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(cfg.Home, "thole.db"), Log: cfg.Log, Took: cfg.meter.commit, Hook: cfg.Hook})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	d, err := newDeliveries(cfg, db)
	if err != nil {
		return "", err
	}
	// Everything overdue is done before the first request is heard.
	if err := d.sweep(ctx); err != nil {
		return "", err
	}
	methods := d.methods()
	staying, attach, answers := d.staying, (func(context.Context, jsonrpc.Stream))(nil), ready
	var beside *http.ServeMux
	if cfg.Build != nil {
		r, err := cfg.Build(ctx, db, d)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, r.stop(context.WithoutCancel(ctx))) }()
		maps.Copy(methods, r.methods)
		maps.Copy(d.channels, r.channels)
		attach, beside = r.attach, r.beside
		answers = func() { r.ready(); ready() }
		staying = func(ctx context.Context, idle time.Duration) (string, error) {
			if why := r.staying(); why != "" {
				return why, nil
			}
			return d.staying(ctx, idle)
		}
	}
	// Deliveries begin when their channels exist and end before them.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	parts.Go(func() { _ = d.driver.Run(run) })
	parts.Go(func() { d.sweepAlways(run) })
	defer parts.Wait()
	defer stop()

	role := cfg.Role
	if role == "" {
		role = "daemon"
	}
	return daemon.Serve(ctx, daemon.Config{
		Owner: owner, Role: role, Methods: methods, Waiting: map[string]bool{wire.JobWait: true, MethodSaved: true, MethodStopped: true}, Attach: attach, Beside: beside,
		Idle: cfg.Idle, Staying: staying, Ready: answers, Log: cfg.Log,
	})
}

// deliveries is the delivery part of the graph.
type deliveries struct {
	machine *delivery.Machine
	keeper  *artifact.Keeper
	driver  *driver.Driver
	// channels is the driver's: complete before it runs.
	channels map[thole.Target]channel.Channel
	runs     *supervise.Runs
	db       *store.DB
	log      *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed at the next commit
}

func newDeliveries(cfg DaemonConfig, db *store.DB) (*deliveries, error) {
	d := &deliveries{db: db, changed: make(chan struct{}), log: cfg.Log, channels: map[thole.Target]channel.Channel{}}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	keeper, err := artifact.New(artifact.Config{Dir: filepath.Join(cfg.Home, "artifacts"), Store: db.Artifacts()})
	if err != nil {
		return nil, err
	}
	if cfg.Limits == (delivery.Limits{}) {
		cfg.Limits = delivery.DefaultLimits()
	}
	d.keeper = keeper
	words, err := messages(cfg.Template, cfg.MessageBytes)
	if err != nil {
		return nil, err
	}
	d.machine = delivery.New(delivery.Config{Store: db.Delivery(), Limits: cfg.Limits, Wake: d.tell, Held: cfg.meter.held})
	d.driver = driver.New(driver.Config{
		Machine: d.machine, Channels: d.channels, Compose: words.Compose, Holder: "pid-" + strconv.Itoa(os.Getpid()), Sole: true, Meter: cfg.meter, Log: cfg.Log,
	})
	d.runs, err = supervise.NewRuns(cfg.Home, d.machine, keeper, sqldb.OutcomeUnknown)
	return d, err
}

// tell wakes the driver and everyone who waits for a change.
func (d *deliveries) tell(ready *delivery.Candidate) {
	d.mu.Lock()
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	d.driver.Wake(ready)
}

func (d *deliveries) nextChange() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *deliveries) methods() map[string]daemon.Method {
	api := &daemon.Delivery{
		Machine: d.machine, Keeper: d.keeper, Changed: d.nextChange, Forecast: d.forecast,
		Cancelled: d.runs.Cancel, Output: d.runs.Output, Unsure: sqldb.OutcomeUnknown, Now: time.Now,
		Check: func(ctx context.Context) ([]wire.Violation, error) {
			found, err := d.db.CheckDelivery(ctx)
			var out []wire.Violation
			for _, v := range found {
				out = append(out, wire.Violation{Rule: v.Rule, Row: v.Row})
			}
			return out, err
		},
	}
	return api.Methods()
}

// forecast asks the channel what it would do now; without one, or where the policy
// is not strictly safe, a human will be needed.
func (d *deliveries) forecast(ctx context.Context, a delivery.Address, t thole.Target, p thole.DeliveryPolicy) wire.Forecast {
	f := d.driver.Forecast(ctx, a, t, p)
	return wire.Forecast{Automatic: f.Automatic, Reasons: f.Reasons}
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

func (d *deliveries) staying(ctx context.Context, idle time.Duration) (string, error) {
	if d.driver.Busy() {
		return "a delivery is under way", nil
	}
	p, err := d.machine.Pending(ctx)
	if err != nil {
		return "", err
	}
	return daemon.Staying(p, time.Now(), idle, d.driver.Serves), nil
}
