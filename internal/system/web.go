package system

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/service"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/version"
)

// Page is where the browser goes: URL logs it in once. Listen is the address a
// proxy in front connects to.
type Page struct {
	URL    string `json:"url"`
	Base   string `json:"base"`
	Listen string `json:"listen"`
	// Warning is what whoever started it must know.
	Warning string `json:"warning,omitempty"`
}

// startWeb serves the page and the REST interface. It returns the page and the
// method that makes another login link.
func startWeb(ctx context.Context, g *service.Group, o Options, db *store.DB, sessions *session.Manager, t *threads, d *deliveries) (page Page, login daemon.Method, err error) {
	ln, err := listenWeb(ctx, o.Config.HTTP, sessions)
	if err != nil {
		return page, nil, err
	}
	at := addressOf(o.Config.HTTP, ln.Addr())
	methods := d.methods()
	api, err := httpapi.New(httpapi.Config{
		Threads: t.machine, Providers: t.providers.offered(o.Demo), Settle: t.providers.settle, Index: db.Index(), Keys: db.Idempotency(),
		Sessions: sessions, Cookies: guard.NewCookies(o.Config.Home, at.tls), Guard: guard.New(guard.Config{Hosts: at.hosts, TLS: at.tls}), Metrics: measured(db),
		Deliveries: func(name string) httpapi.Method { return httpapi.Method(methods[name]) }, DeliveriesChanged: d.nextChange,
		UI: o.UI, Version: version.Version, Log: o.Log,
	})
	if err != nil {
		return page, nil, errors.Join(err, ln.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	done := make(chan struct{})
	start := func(context.Context) error {
		go func() {
			defer close(done)
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				o.Log.Error("the page is served no longer", "err", err)
			}
		}()
		return nil
	}
	stop := func(ctx context.Context) error {
		err := api.Shutdown(ctx)
		if e := srv.Shutdown(ctx); e != nil {
			err = errors.Join(err, srv.Close())
		}
		<-done
		return err
	}
	if err := g.Start("http", &part{start: start, stop: stop}); err != nil {
		return page, nil, err
	}
	link := func(ctx context.Context) (Page, error) {
		code, err := sessions.NewLogin(ctx, thole.LocalUser)
		return Page{URL: at.base + "/auth/login?code=" + code, Base: at.base, Listen: ln.Addr().String(), Warning: joinWarnings(unwalled(o.Config.Executor), at.warning)}, err
	}
	page, err = link(ctx)
	return page, func(ctx context.Context, _ thole.Actor, _ json.RawMessage) (any, error) { return link(ctx) }, err
}

// MethodLogin asks the home's owner for a page that logs a browser in.
const MethodLogin = "thole/login"

func joinWarnings(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}
