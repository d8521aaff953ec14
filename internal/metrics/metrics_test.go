package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/tholehq/thole/internal/metrics"
)

func ask(s *metrics.Set) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w
}

// Prometheus's own parser reads back what was recorded.
func TestPrometheusReadsIt(t *testing.T) {
	const odd = "a \"quoted\\ \nlabel"
	s := metrics.New()
	s.Gauge("test_rows", "Two\nlines \\ help.", []string{"kind", "state"}, func(context.Context) ([]metrics.Value, error) {
		return []metrics.Value{{[]string{odd, "open"}, 1.5}, {[]string{"turn", "waiting"}, 3e9}}, nil
	})
	took := metrics.HistogramBy(s, "test_seconds", "How long.", "step", "one", "two")
	took["one"](20 * time.Millisecond)
	rise := s.Counter("test_total", "How often.")
	rise()
	rise()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(ask(s).Body)
	if err != nil {
		t.Fatal(err)
	}
	rows := families["test_rows"]
	if rows.GetHelp() != "Two\nlines \\ help." || len(rows.GetMetric()) != 2 || rows.GetMetric()[0].GetLabel()[0].GetValue() != odd ||
		rows.GetMetric()[0].GetGauge().GetValue() != 1.5 || rows.GetMetric()[1].GetGauge().GetValue() != 3e9 {
		t.Errorf("read %v", rows)
	}
	if n := families["test_total"].GetMetric()[0].GetCounter().GetValue(); n != 2 {
		t.Errorf("counted %v", n)
	}
	steps := families["test_seconds"].GetMetric()
	if len(steps) != 2 || steps[0].GetHistogram().GetSampleCount() != 1 || steps[0].GetHistogram().GetSampleSum() != .02 || steps[1].GetHistogram().GetSampleCount() != 0 {
		t.Errorf("took %v", steps)
	}
	for _, name := range []string{
		"process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds",
		"go_goroutines", "go_memstats_heap_inuse_bytes", "go_memstats_alloc_bytes_total", "go_info",
	} {
		if f := families[name]; f == nil || f.GetMetric()[0].GetCounter().GetValue()+f.GetMetric()[0].GetGauge().GetValue() <= 0 {
			t.Errorf("%s: %v", name, f)
		}
	}
	for _, name := range []string{"process_cpu_seconds_total", "go_gc_pause_seconds_total"} { // may still be zero
		if families[name] == nil {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestWhatCannotBeReadIsNoZero(t *testing.T) {
	s := metrics.New()
	s.Gauge("test_rows", "Rows.", nil, func(context.Context) ([]metrics.Value, error) { return nil, errors.New("the store is away") })
	if w := ask(s); w.Code != http.StatusInternalServerError {
		t.Errorf("answered %d", w.Code)
	}
}
