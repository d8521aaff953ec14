package system

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executord/watchdog"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/version"
)

// shared reports whether other servers can use the store at the same time.
func (i identity) shared() bool { return i.server != "" }

// newMember describes this process as a server of a store that others can reach; nil where
// none can.
func (s *System) newMember(self identity, cfg *config.Config, db *store.DB, log *slog.Logger) (*roster.Member, error) {
	if !self.shared() {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this machine: %w", err)
	}
	who := roster.Server{
		ID: self.server, Place: host + ":" + cfg.Home, Run: rand.Text(), Version: version.Version, Protocol: roster.Protocol,
		Objects: objectsName(cfg), Orphans: cfg.Executor.OrphanTimeout + leaseGrace,
	}
	for _, r := range cfg.Server.Roles {
		who.Roles = append(who.Roles, roster.Role(r))
	}
	lease := leaseFile(GatewaySocket(cfg.Home))
	return &roster.Member{Store: db.Servers(), Self: who, Replaced: sync.OnceFunc(func() { close(s.lost) }), Log: log, Asking: func() func() {
		at := watchdog.Now()
		return func() {
			if err := watchdog.Renew(lease, at); err != nil {
				log.Error("the lease of executors was not renewed, and they will end", "err", err)
			}
		}
	}}, nil
}

// objectsName is the same for servers that share their objects.
func objectsName(cfg *config.Config) string {
	if cfg.Objects.Kind == "s3" {
		return "s3:" + cfg.Objects.Endpoint + "/" + cfg.Objects.Bucket
	}
	return roster.LocalObjects + cfg.Home
}

// tickets are shared with the other servers of a store, nil where there is none.
func tickets(db *store.DB, self identity) httpapi.Tickets {
	if !self.shared() {
		return nil
	}
	return db.Tickets()
}

// join enters this process among the servers of its store.
func join(ctx context.Context, m *roster.Member, page *web) error {
	if m == nil {
		return nil
	}
	if page != nil {
		m.Self.Address = page.ln.Addr().String()
	}
	return m.Store.Join(ctx, m.Self)
}

func errLost() error {
	return thole.Errorf(thole.CodeConflict, "another process serves the store in the place of this one").WithHint("a home has one server at a time")
}

// duty is a background part that runs on one server at a time.
func duty(m *roster.Member, name string, work func(context.Context)) *part {
	if m == nil {
		return background(work)
	}
	return background(func(ctx context.Context) { m.Alone(ctx, name, work) })
}

// goneEvery bounds how long a request goes on whose login ended on another server, if that
// was not heard of.
const goneEvery = 10 * time.Second

// endGone ends requests in progress whose login, token or share link ended on another server.
func endGone(ctx context.Context, db *store.DB, sessions *session.Manager, log *slog.Logger) {
	heard, tick := make(chan struct{}, 1), time.NewTicker(goneEvery)
	defer tick.Stop()
	defer db.LoginSessions().WatchEnded(func() {
		select {
		case heard <- struct{}{}:
		default:
		}
	})()
	for {
		select {
		case <-ctx.Done():
			return
		case <-heard:
		case <-tick.C:
		}
		if err := sessions.EndGone(ctx, db.LoginSessions().Gone); err != nil && ctx.Err() == nil {
			log.Warn("look for logins that ended", "err", err)
		}
	}
}

// withoutAPI answers for a server that people do not use: whether it is well, and its numbers.
func withoutAPI(next http.Handler) http.Handler {
	open := []string{"/healthz", "/readyz", "/metrics"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(open, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		jsonhttp.Error(w, thole.Errorf(thole.CodeUnavailable, "this server has not the role api").WithHint("ask another server of the store; server.roles decides"))
	})
}

// reconcileDead settles the model calls of servers that died.
func (b *books) reconcileDead(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		if n, err := b.ledger.Reconcile(ctx, time.Time{}, time.Now()); err != nil && ctx.Err() == nil {
			b.log.Warn("settle the calls of servers that died", "err", err)
		} else if n > 0 {
			b.log.Warn("model calls of a server that died count with what was reserved for them", "err", fmt.Errorf("%d calls", n))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
