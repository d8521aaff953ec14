package system

import (
	"context"
	"maps"
	"os"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/ownconfig"
)

// OwnConfig is the user of this machine, as far as configuration of theirs goes into
// sessions; the reader is nil where a person switched that off. here is a directory that the
// session's thread writes in place.
func OwnConfig(cfg *config.Config, home string) func(cli, here string) ownconfig.Config {
	if !cfg.Providers.OwnConfig {
		return nil
	}
	u := ownconfig.User{Home: home, Getenv: os.Getenv, Hooks: cfg.Providers.Hooks, Secrets: cfg.Providers.MCPSecrets}
	if cfg.Executor.Isolation == "box" {
		u.Shown = func(path string) bool { return local.Shown(path, cfg.Executor.Paths) }
	}
	return func(cli, here string) ownconfig.Config {
		u := u
		u.Written = here
		return ownconfig.Read(u, cli)
	}
}

// configured adds the configuration of the user of this machine to the grants of their
// threads. What a grant has already counts.
func configured(own func(cli, here string) ownconfig.Config, grant grants) grants {
	if own == nil {
		return grant
	}
	return func(ctx context.Context, who provider.For, token string) (provider.Grant, error) {
		g, err := grant(ctx, who, token)
		if err != nil || who.Owner.User != thole.LocalUser {
			return g, err
		}
		mine := own(who.Provider, who.Here)
		maps.Copy(mine.Files, g.Config)
		maps.Copy(mine.Env, g.Env)
		g.Config, g.Env = mine.Files, mine.Env
		return g, nil
	}
}
