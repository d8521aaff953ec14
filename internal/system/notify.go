package system

import (
	"log/slog"
	"os"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/notify"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

// newNotifier notifies the user of this machine of their threads; nil where nothing says how.
func newNotifier(cfg *config.Config, db *store.DB, self identity, threads *thread.Machine, page *web, log *slog.Logger) *notify.Notifier {
	n, out := cfg.Notify, notify.Config{
		Threads: threads, Actor: thole.LocalActor, On: cfg.Notify.On, Details: cfg.Notify.Details,
		Least: time.Duration(cfg.Notify.MinSeconds) * time.Second, Page: cfg.HTTP.PublicURL, Log: log,
	}
	if self.shared() {
		out.Take = db.TakeNotice
	}
	if page != nil {
		out.Page = page.at.base
	}
	if len(n.Command) > 0 {
		out.Targets = append(out.Targets, notify.Command(n.Command, os.Getenv))
	}
	if n.Webhook != "" {
		out.Targets = append(out.Targets, notify.Webhook(string(n.Webhook), string(n.WebhookSecret)))
	}
	if n.Desktop {
		if path, err := notify.FindSender(); err != nil {
			log.Warn("notify.desktop shows nothing: there is no "+notify.Sender+" here", "err", err)
		} else {
			out.Targets = append(out.Targets, notify.Desktop(path, os.Getenv))
		}
	}
	if len(out.Targets) == 0 {
		return nil
	}
	return notify.New(out)
}
