package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/toolchain"
)

// Shell looks at this process's own shell for what agents have of it.
func Shell(ctx context.Context, cfg *config.Config) toolchain.Plan {
	home, _ := os.UserHomeDir()
	look := toolchain.Config{Home: home, Environ: os.Environ(), Names: cfg.Executor.Env, Bare: true, System: local.SystemPath, Judge: judge(cfg)}
	for _, dir := range cfg.Executor.Path {
		switch dir {
		case config.Inherit:
			look.Path, look.Bare = append(look.Path, filepath.SplitList(os.Getenv("PATH"))...), false
		case config.System:
		default:
			look.Path, look.Typed = append(look.Path, dir), append(look.Typed, dir)
		}
	}
	return toolchain.Look(ctx, look)
}

// judge refuses what agents must not be shown, and what holds a key of the server's own.
func judge(cfg *config.Config) func(path string) error {
	guard := local.MayShow(cfg.Home)
	return func(path string) error {
		for _, key := range []string{cfg.VaultKey(), cfg.Store.PasswordFile, cfg.Objects.SecretKeyFile, cfg.HTTP.TLSKey} {
			if key != "" && (strings.HasPrefix(key, path+"/") || strings.HasPrefix(real(key), real(path)+"/")) {
				return errors.New("holds a key of thole's: " + key)
			}
		}
		return guard(path)
	}
}

func real(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}

// checkShell says what of the user's PATH and variables agents have.
func checkShell(ctx context.Context, cfg *config.Config) Finding {
	p := Shell(ctx, cfg)
	f := Finding{Part: "toolchain", OK: true, Disables: "turns: no executor starts"}
	var left []string
	for _, e := range p.Entries {
		if e.LeftOut != "" && e.LeftOut != "it is not there" {
			left = append(left, e.Dir+" ("+e.LeftOut+")")
		}
	}
	f.Found = "agents find programs in " + strconv.Itoa(len(p.Path)) + " directories of this shell's PATH"
	if len(left) > 0 {
		f.Found += ", not in " + strings.Join(left, ", ")
	}
	if p.Author != "" {
		f.Found += "; they commit as " + p.Author
	}
	var secrets []string
	for _, v := range p.Variables {
		if v.Secret {
			secrets = append(secrets, v.Name)
		}
	}
	if len(secrets) > 0 {
		f.Found += "; executor.env hands them " + strings.Join(secrets, ", ") + ", which any of them may send away"
	}
	missing := slices.DeleteFunc(slices.Clone(cfg.Executor.Env), func(name string) bool { return os.Getenv(name) != "" })
	if len(missing) > 0 {
		f.Found += "; " + strings.Join(missing, ", ") + " of executor.env is not set"
	}
	if err := local.CheckTyped(p); err != nil {
		f.OK, f.Problem, f.Fix = false, err.Error(), thole.HintOf(err)
	}
	return f
}
