package system

import (
	"cmp"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel/heartbeat"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/delivery/driver"
	"github.com/tholehq/thole/internal/inbox"
	"github.com/tholehq/thole/internal/version"
)

// automation is what the file of a binding's heartbeat shows.
func automation(b delivery.Binding) thole.AutomationStatus {
	f, err := heartbeat.Look(b.Endpoint, b.Automation)
	if err != nil {
		return thole.AutomationUnclear
	}
	return f.Status
}

// newDesktop serves the Desktop app of this machine. alone says that no other server works on
// the store: the app, its files and the inbox are of one machine.
func newDesktop(cfg *config.Config, d *deliveries, alone bool) *daemon.Desktop {
	return &daemon.Desktop{
		Enabled: cfg.Desktop.Enabled && alone, Machine: d.machine, Inbox: inbox.In(cfg.Home), Compose: d.compose.Compose, Sweep: d.sweep, Now: time.Now,
		Look: func(home, id string) (thole.AutomationStatus, string, thole.ThreadID, error) {
			f, err := heartbeat.Look(home, id)
			return f.Status, f.Kind, f.Target, err
		},
		Fingerprint: func() string {
			return heartbeat.Fingerprint(cfg.Home, cmp.Or(cfg.Providers.Codex, "codex"), version.Version)
		},
	}
}

// heartbeats is how the driver reaches Desktop threads, nil if the channel is off.
func heartbeats(d *daemon.Desktop) driver.Heartbeats {
	if !d.Enabled {
		return nil
	}
	return heartbeat.Threads{Machine: d.Machine, Fingerprint: d.Fingerprint}
}
