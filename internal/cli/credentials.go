package cli

import (
	"context"
	"io"
	"os"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/setup"
)

// handKeys gives the owner the keys that this shell has for a thread's agent. They stay in
// its memory and are used for that thread alone.
func (e *Env) handKeys(ctx context.Context, thread, providerName string) error {
	if s, err := e.server(); err != nil || s != nil {
		return err // a team server has its own, and gets nobody's
	}
	home, _ := os.UserHomeDir() // without one there are no settings that name variables either
	env := setup.Variables(ctx, provider.Login{Home: home, Getenv: os.Getenv}, providerName)
	if len(env) == 0 {
		return nil
	}
	return e.ask(ctx, daemon.MethodKeys, daemon.KeysParams{Thread: thole.ThreadID(thread), Env: env}, nil)
}

// checks asks each service whether it takes the credential that agents use: by the owner of
// the home, which has the vault, or from here where nobody owns it.
func (e *Env) checks(ctx context.Context) (daemon.Checks, error) {
	cfg, err := e.config(nil)
	if err != nil {
		return nil, err
	}
	var out daemon.Checks
	c := &daemonclient.Client{Home: cfg.Home, NoStart: true}
	if c.Call(ctx, daemon.MethodCheck, daemon.CheckParams{}, &out) == nil {
		return out, nil
	}
	routes, err := upstream.New(upstream.Config{Entries: cfg.Gateway.Upstreams.Entries(), Login: ownLogins(cfg)})
	if err != nil {
		return nil, err
	}
	return daemon.CheckAll(ctx, routes, thole.LocalUser, ""), nil
}

// printPays says what the next model call of a thread is paid with.
func printPays(w io.Writer, all []upstream.Source) {
	for _, s := range all {
		service := s.Host
		if service == "" {
			service = s.Upstream
		}
		putf(w, "pays: %s, %s\n", oneLine(service, 80), oneLine(s.Origin, 120))
	}
}
