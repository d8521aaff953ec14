package system

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/measure"
	"github.com/tholehq/thole/internal/metrics"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/tracing"
	"github.com/tholehq/thole/internal/version"
)

// meter makes spans and metrics of what the parts report.
type meter struct {
	spans  *tracing.Tracer
	set    *metrics.Set
	took   map[measure.What]func(time.Duration)
	counts map[measure.What]func()
	spent  func(thole.TurnTime)
}

func newMeter(spans *tracing.Tracer) *meter {
	set := metrics.New()
	took := metrics.HistogramBy(set, "thole_turn_phase_seconds", "How long the phases of turns took.", "phase",
		measure.Start, measure.Restore, measure.Link, measure.Validate, measure.Run, measure.Apply)
	for what, h := range map[measure.What][2]string{
		measure.Turn:        {"thole_turn_seconds", "How long a worker had a turn, humans included."},
		measure.Claim:       {"thole_queue_wait_seconds", "How long turns waited for a worker."},
		measure.Commit:      {"thole_store_commit_seconds", "How long durable changes took, the wait for others included."},
		measure.ModelWait:   {"thole_model_wait_seconds", "From a run's beginning to the agent's first words."},
		measure.Sync:        {"thole_sync_seconds", "How long the syncs of workspaces took."},
		measure.Maintenance: {"thole_maintenance_seconds", "How long maintenance of executors (sync, stop, remove) took."},
		measure.Deliver:     {"thole_delivery_seconds", "From a delivery's barrier to its recorded answer."},
	} {
		took[what] = set.Histogram(h[0], h[1])
	}
	counts := map[measure.What]func(){}
	for what, c := range map[measure.What][2]string{
		measure.Retried:    {"thole_turn_retries_total", "Turns and maintenance that went back to the queue."},
		measure.Fenced:     {"thole_leases_fenced_total", "Workers that lost their lease."},
		measure.SyncFailed: {"thole_syncs_failed_total", "Syncs of workspaces that failed."},
		measure.Held:       {"thole_deliveries_held_total", "Batches that were left to a human."},
		measure.Slow:       {"thole_slow_subscribers_total", "Subscribers that were ended because they fell behind."},
	} {
		counts[what] = set.Counter(c[0], c[1])
	}
	return &meter{spans, set, took, counts, spentOn(set)}
}

// spentOn records what the time of turns was spent on. A turn counts in every class, also
// where it spent nothing: the sums of the classes are then shares of the same turns.
func spentOn(set *metrics.Set) func(thole.TurnTime) {
	by := metrics.HistogramBy(set, "thole_turn_time_seconds", "What turns waited for, from their start until their files were saved.", "class",
		"model", "tools", "human", "overhead")
	return func(t thole.TurnTime) {
		by["model"](t.Model)
		by["tools"](t.Tools)
		by["human"](t.Human)
		by["overhead"](t.Overhead)
	}
}

// Begin implements measure.Meter.
func (m *meter) Begin(ctx context.Context, s measure.Step) (context.Context, func(error)) {
	ctx, end := m.spans.Begin(ctx, tracing.Span{Name: string(s.What), Trace: s.Trace, Began: s.Began, About: s.About})
	began := s.Began
	if began.IsZero() {
		began = time.Now()
	}
	return ctx, func(err error) {
		end(err)
		m.Took(s.What, max(0, time.Since(began))) // the store's clock may be ahead
	}
}

// Took implements measure.Meter.
func (m *meter) Took(w measure.What, d time.Duration) { m.took[w](d) }

// Count implements measure.Meter.
func (m *meter) Count(w measure.What) { m.counts[w]() }

// commit, held and slow are what the machines and the store report, which know no
// meter.
func (m *meter) commit(d time.Duration) { m.Took(measure.Commit, d) }
func (m *meter) held()                  { m.Count(measure.Held) }
func (m *meter) slow()                  { m.Count(measure.Slow) }

// watch adds what rows say.
func (m *meter) watch(db *store.DB) {
	m.set.Gauge("thole_rows", "Open rows by kind and state.", []string{"kind", "state"}, func(ctx context.Context) ([]metrics.Value, error) {
		counts, err := db.Stats(ctx)
		var out []metrics.Value
		for _, n := range counts {
			out = append(out, metrics.Value{Labels: []string{n.Kind, n.State}, Value: float64(n.Rows)})
		}
		return out, err
	})
	m.set.Gauge("thole_build_info", "The version that runs.", []string{"version", "store"}, func(context.Context) ([]metrics.Value, error) {
		return []metrics.Value{{Labels: []string{version.Version, db.Engine()}, Value: 1}}, nil
	})
}
