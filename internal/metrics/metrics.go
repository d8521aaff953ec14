// Package metrics serves measurements to Prometheus. What rows already say is read
// when it is asked for, so that it cannot drift from the truth; what nothing
// records (how long, how often) is kept since the start. A Set is a registry of
// its own: nothing is global. It knows none of our nouns.
package metrics

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Set is what one process exports.
type Set struct{ reg *prometheus.Registry }

// New makes a set that exports what the process itself uses.
func New() *Set {
	s := &Set{prometheus.NewRegistry()}
	s.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "go_gc_pause_seconds_total", Help: "Time for which garbage collection stopped everything."}, func() float64 {
			var gc debug.GCStats
			debug.ReadGCStats(&gc)
			return gc.PauseTotal.Seconds()
		}))
	return s
}

// buckets reach from a commit to a long turn, each about three times the last.
var buckets = []float64{.0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000}

// Histogram adds a distribution of durations and returns the function that records one.
func (s *Set) Histogram(name, help string) func(time.Duration) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	s.reg.MustRegister(h)
	return func(d time.Duration) { h.Observe(d.Seconds()) }
}

// HistogramBy is a Histogram for each value of a label. All are there from the
// start: what never happened is a zero and no gap.
func HistogramBy[V ~string](s *Set, name, help, label string, values ...V) map[V]func(time.Duration) {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
	s.reg.MustRegister(h)
	out := map[V]func(time.Duration){}
	for _, v := range values {
		o := h.WithLabelValues(string(v))
		out[v] = func(d time.Duration) { o.Observe(d.Seconds()) }
	}
	return out
}

// Counter adds a number that rises and returns how.
func (s *Set) Counter(name, help string) func() {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	s.reg.MustRegister(c)
	return c.Inc
}

// Value is a sample with the values of its family's labels.
type Value struct {
	Labels []string
	Value  float64
}

// Gauge adds a family that is read when it is scraped.
func (s *Set) Gauge(name, help string, labels []string, read func(context.Context) ([]Value, error)) {
	s.reg.MustRegister(&source{prometheus.NewDesc(name, help, labels, nil), read})
}

// Handler answers with everything. If something cannot be read the whole answer is
// an error: a gap would look like zero.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}

type source struct {
	desc *prometheus.Desc
	read func(context.Context) ([]Value, error)
}

// Describe implements prometheus.Collector.
func (s *source) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect implements prometheus.Collector.
func (s *source) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	values, err := s.read(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(s.desc, err)
		return
	}
	for _, v := range values {
		m, err := prometheus.NewConstMetric(s.desc, prometheus.GaugeValue, v.Value, v.Labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(s.desc, err)
		}
		to <- m
	}
}
