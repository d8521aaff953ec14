package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/tholehq/thole/internal/metrics"
)

// Prometheus's own parser reads back what was told.
func TestPrometheusReadsIt(t *testing.T) {
	const odd = "a \"quoted\\ \nlabel"
	source := func(context.Context) ([]metrics.Family, error) {
		return []metrics.Family{{"thole_rows", "Two\nlines \\ help.", metrics.Gauge, []metrics.Value{
			{[]string{"kind", odd, "state", "open"}, 1.5}, {[]string{"kind", "turn", "state", "waiting"}, 3e9},
		}}}, nil
	}
	w := httptest.NewRecorder()
	metrics.Handler(source, metrics.Process).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	rows := families["thole_rows"]
	if rows.GetHelp() != "Two\nlines \\ help." || len(rows.GetMetric()) != 2 || rows.GetMetric()[0].GetLabel()[0].GetValue() != odd ||
		rows.GetMetric()[0].GetGauge().GetValue() != 1.5 || rows.GetMetric()[1].GetGauge().GetValue() != 3e9 {
		t.Errorf("read %v", rows)
	}
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "go_goroutines"} {
		if f := families[name]; f == nil || f.GetMetric()[0].GetCounter().GetValue()+f.GetMetric()[0].GetGauge().GetValue() <= 0 {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestWhatCannotBeReadIsNoZero(t *testing.T) {
	broken := func(context.Context) ([]metrics.Family, error) { return nil, errors.New("the store is away") }
	w := httptest.NewRecorder()
	metrics.Handler(metrics.Process, broken).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("answered %d", w.Code)
	}
}
