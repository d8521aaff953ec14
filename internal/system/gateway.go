package system

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/ledger"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/vault"
)

// GatewaySocket is the socket of a home's model gateway. It and the lease of executors are
// alone in their directory, which executors of other users see: nobody else passes the home above it.
func GatewaySocket(home string) string { return filepath.Join(home, "gateway", "g.sock") }

// gatewayDrain is how long answers that stream may go on when the owner stops. What is cut
// then is asked for again: executors wait for the next owner.
const gatewayDrain = 2 * time.Second

// Gateway serves the model gateway of a home: a service.Part.
type Gateway struct {
	socket  string
	handler *gateway.Gateway
	server  *http.Server
	done    chan struct{}
}

// NewGateway makes the gateway of a home; nothing listens yet.
func NewGateway(home string, cfg gateway.Config) *Gateway {
	h := gateway.New(cfg)
	return &Gateway{socket: GatewaySocket(home), handler: h, server: gateway.NewServer(h)}
}

// Start implements service.Part. A client that finds the socket is served: it is moved to
// its place when it listens, over what a killed owner left there.
func (g *Gateway) Start(context.Context) error {
	ln, err := listenGateway(g.socket)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start the model gateway: %w", err)
	}
	g.done = make(chan struct{})
	go func() {
		defer close(g.done)
		_ = g.server.Serve(gateway.ListenProof(ln))
	}()
	return nil
}

func listenGateway(socket string) (net.Listener, error) {
	dir := filepath.Dir(socket)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
		return nil, err
	}
	next := filepath.Join(dir, "g.new")
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: next, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // it has another name then
	if err = os.Chmod(next, 0o666); err == nil {
		err = os.Rename(next, socket)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// Stop implements service.Part.
func (g *Gateway) Stop(ctx context.Context) error {
	err := os.Remove(g.socket)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	ctx, cancel := context.WithTimeout(ctx, gatewayDrain)
	defer cancel()
	if g.server.Shutdown(ctx) != nil {
		err = errors.Join(err, g.server.Close())
	}
	<-g.done
	g.handler.Close()
	return err
}

// claims are the store's tokens as the gateway asks for them.
type claims struct{ *store.GatewayTokens }

// Claim implements gateway.Tokens.
func (c claims) Claim(ctx context.Context, token, proof [32]byte) (gateway.Claim, error) {
	got, err := c.GatewayTokens.Claim(ctx, token, proof)
	return gateway.Claim(got), err
}

// throughGateway gives agents tokens of the gateway.
type throughGateway struct {
	tokens *store.GatewayTokens
	tools  bool // agents have the tool server
	// grant is what leads a CLI to the gateway with a token. One without Gateway is
	// handed in as it is.
	grant grants
}

// grants leads a CLI to its models with a token.
type grants = func(ctx context.Context, who provider.For, token string) (provider.Grant, error)

// For implements provider.Credentials. The same start of an executor has the same tokens,
// so that an owner that was killed hands in what its agents have already.
func (c throughGateway) For(ctx context.Context, who provider.For) (provider.Grant, error) {
	token := wire.GatewayToken(who.Secret, string(who.Thread), who.Provider)
	g, err := c.grant(ctx, who, token)
	if err == nil && c.tools && table.Of(who.Provider).Tools && who.Secret != "" {
		g = g.WithTools(token)
	}
	if err != nil || !g.Led() {
		return g, err
	}
	return g, c.tokens.Mint(ctx, store.GatewayToken{
		Token: sha256.Sum256([]byte(token)), Proof: sha256.Sum256([]byte(wire.GatewayProof(who.Secret))),
		Executor: who.Executor, Thread: who.Thread, Provider: who.Provider,
	})
}

// models is the gateway of the home and what leads agents to it.
func (s *System) models(o Options, db *store.DB, l *budget.Ledger, secrets *vault.Vault, records gateway.Recorder, tools gateway.Tools) (*Gateway, provider.Credentials, paid, error) {
	if o.Demo {
		model, err := s.demoModel(o)
		if err != nil {
			return nil, nil, paid{}, err
		}
		g, creds, err := DemoGateway(o.Config.Home, db, l, model, records, tools, o.Log)
		return g, creds, paid{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, nil, paid{}, thole.Errorf(thole.CodeInvalid, "find the agents' logins: %w", err)
	}
	logins := provider.Login{Home: home, Getenv: os.Getenv, HandIn: o.Config.Providers.HandInLogins, Renewed: doctor.NoteLogins(o.Config.Home, o.Log)}
	shells := &upstream.Shells{}
	routes, err := upstream.New(upstream.Config{Entries: o.Config.Gateway.Upstreams.Entries(), Vault: secrets, Shells: shells, Login: logins, Tools: o.Config.Gateway.Tools})
	if err != nil {
		return nil, nil, paid{}, err
	}
	g := NewGateway(o.Config.Home, gateway.Config{
		Tokens: claims{db.GatewayTokens()}, Routes: routes, Ledger: ledger.Of(l), Refused: routes.Refused, Recorder: records, Tools: tools, Log: o.Log,
	})
	return g, throughGateway{db.GatewayTokens(), tools != nil, configured(OwnConfig(o.Config, home), granted(routes, logins))}, paid{routes, shells}, nil
}

// paid is what pays for model calls; nothing does in a demo.
type paid struct {
	routes *upstream.Routes
	shells *upstream.Shells
}

// connections says how agents reach their models. In a demo every one talks to the scripted
// model.
func (p paid) connections(ctx context.Context, who thole.Owner, cli string, check bool) ([]upstream.Checked, error) {
	switch {
	case p.routes == nil:
		return []upstream.Checked{{Source: upstream.Source{Upstream: "demo", Origin: "the scripted model of --demo"}}}, nil
	case check:
		return p.routes.Check(ctx, gateway.Claim{Owner: who, Provider: cli})
	}
	all, err := p.routes.Sources(ctx, who, cli)
	var out []upstream.Checked
	for _, s := range all {
		out = append(out, upstream.Checked{Source: s})
	}
	return out, err
}

// account is what pays for an agent's models in the words of the contract. No secret is opened
// for it.
func (p paid) account(ctx context.Context, who thole.Owner, cli string) (string, error) {
	all, err := p.connections(ctx, who, cli, false)
	switch {
	case thole.CodeOf(err) == thole.CodeNotFound, err == nil && len(all) == 0:
		return "", nil // nothing does
	case err == nil && all[0].Upstream == appserver.AccountChatGPT:
		return appserver.AccountChatGPT, nil
	}
	return appserver.AccountKey, err
}

// granted leads a CLI to its routes. One whose login a person had handed in gets that
// login instead, and what needs no model gets nothing.
func granted(routes *upstream.Routes, logins provider.Login) grants {
	return func(ctx context.Context, who provider.For, token string) (provider.Grant, error) {
		if slices.Contains(logins.HandIn, who.Provider) || table.Of(who.Provider).Gateway.Route == "" {
			if who.Owner.User != thole.LocalUser { // the logins are those of the user of this machine
				return provider.Grant{}, nil
			}
			return logins.For(ctx, who)
		}
		return routes.Grant(ctx, gateway.Claim{Executor: who.Executor, Thread: who.Thread, Turn: who.Turn, Owner: who.Owner, Provider: who.Provider}, token)
	}
}

// DemoGateway is the gateway of a home whose every model is a scripted one, and the
// credentials that lead agents to it.
func DemoGateway(home string, db *store.DB, l *budget.Ledger, model string, records gateway.Recorder, tools gateway.Tools, log *slog.Logger) (*Gateway, provider.Credentials, error) {
	routes, err := newDemoRoutes(model)
	if err != nil {
		return nil, nil, err
	}
	g := NewGateway(home, gateway.Config{Tokens: claims{db.GatewayTokens()}, Routes: routes, Ledger: ledger.Of(l), Recorder: records, Tools: tools, Log: log})
	return g, throughGateway{db.GatewayTokens(), tools != nil, demoGrant}, nil
}
