package system

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/version"
)

// metrics serves what a person watches, read from the store when asked: nothing
// is counted twice and nothing drifts from the truth.
func metrics(db *store.DB) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &storeCollector{db: db,
		rows:  prometheus.NewDesc("thole_rows", "Open rows by kind and state.", []string{"kind", "state"}, nil),
		build: prometheus.NewDesc("thole_build_info", "The version that runs.", []string{"version", "store"}, nil),
	})
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

type storeCollector struct {
	db          *store.DB
	rows, build *prometheus.Desc
}

func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.rows
	ch <- c.build
}

func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	counts, err := c.db.Stats(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.rows, err)
		return
	}
	for _, n := range counts {
		ch <- prometheus.MustNewConstMetric(c.rows, prometheus.GaugeValue, float64(n.Rows), n.Kind, n.State)
	}
	ch <- prometheus.MustNewConstMetric(c.build, prometheus.GaugeValue, 1, version.Version, c.db.Engine())
}
