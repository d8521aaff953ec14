package system

import (
	"context"
	"log/slog"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// newPlugins serves host plugins with the home's sessions and deliveries. alone says that no
// other server works on the store.
func newPlugins(db *store.DB, c *channels, d *deliveries, by *driver.Driver, api *daemon.Delivery, alone bool) *daemon.Plugins {
	return &daemon.Plugins{
		Store: db.Plugins(), Keeper: c.keeper, Machine: d.machine, Results: d.keeper, Alone: alone, Known: by.Known, Query: api.Query,
		Forecast: func(ctx context.Context, a delivery.Address, p thole.DeliveryPolicy, brings *thole.PluginTarget) wire.Forecast {
			return forecastView(by.Forecast(ctx, a, thole.TargetCLI, p, brings))
		},
		Reconcile: func() { by.Wake(nil) }, Unsure: sqldb.OutcomeUnknown, Now: time.Now,
	}
}

// sweepPlugins ends what plugins left.
func sweepPlugins(ctx context.Context, p *daemon.Plugins, log *slog.Logger) {
	t := time.NewTicker(sweepSessions)
	defer t.Stop()
	for {
		if err := p.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.Error("sweep of plugins failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
