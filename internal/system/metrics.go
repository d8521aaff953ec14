package system

import (
	"context"
	"net/http"

	"github.com/tholehq/thole/internal/metrics"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/version"
)

// measured serves what a person watches.
func measured(db *store.DB) http.Handler {
	return metrics.Handler(metrics.Process, func(ctx context.Context) ([]metrics.Family, error) {
		counts, err := db.Stats(ctx)
		if err != nil {
			return nil, err
		}
		rows := metrics.Family{Name: "thole_rows", Help: "Open rows by kind and state.", Kind: metrics.Gauge}
		for _, n := range counts {
			rows.Values = append(rows.Values, metrics.Value{Labels: []string{"kind", n.Kind, "state", n.State}, Value: float64(n.Rows)})
		}
		build := metrics.One("thole_build_info", "The version that runs.", metrics.Gauge, 1, "version", version.Version, "store", db.Engine())
		return []metrics.Family{rows, build}, nil
	})
}
