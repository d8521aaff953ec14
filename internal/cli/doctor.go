package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/system"
	"github.com/tholehq/thole/internal/vault"
)

func newDoctor(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Args: cobra.NoArgs,
		Short: "Check dependencies and explain how to fix what is missing",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			tried, err := env.checks(cmd.Context())
			if err != nil {
				return err
			}
			findings := append(system.Doctor(cmd.Context(), cfg, env.kept(cmd.Context()), tried), env.sessionFindings(cmd.Context())...)
			if err := env.print(findings, func(w io.Writer) { printFindings(w, findings) }); err != nil {
				return err
			}
			return neededMissing(findings)
		},
	}
	env.configFlag(cmd)
	return cmd
}

// neededMissing is the error of a machine on which turns do not run. Optional parts do not count.
func neededMissing(findings []doctor.Finding) error {
	for _, f := range findings {
		if f.Needed && !f.OK {
			return thole.Errorf(thole.CodeUnavailable, "%s: %s", f.Part, f.Problem).WithHint("%s", f.Fix)
		}
	}
	return nil
}

// kept asks the daemon, if one runs, what the vault has for the user of this machine.
func (e *Env) kept(ctx context.Context) doctor.Kept {
	home, err := e.home()
	if err != nil {
		return nil
	}
	out := doctor.Kept{}
	c := &daemonclient.Client{Home: home, NoStart: true}
	for _, owner := range vault.OwnerKinds {
		var all vault.Listed
		if c.Call(ctx, vault.MethodList, vault.Params{Owner: owner}, &all) != nil {
			return nil
		}
		for _, i := range all.Items {
			if i.Kind == vault.ProviderAuth && out[i.Provider] == "" {
				out[i.Provider] = string(i.State)
			}
		}
	}
	return out
}

// sessionFindings asks the daemon, if one runs, whether results reach the open
// Codex sessions.
func (e *Env) sessionFindings(ctx context.Context) (out []doctor.Finding) {
	home, err := e.home()
	if err != nil {
		return nil
	}
	c := &daemonclient.Client{Home: home, NoStart: true}
	var list []wire.CodexSession
	if c.Call(ctx, wire.SessionList, wire.SessionListParams{}, &list) != nil {
		return nil
	}
	for _, s := range list {
		if err := c.Call(ctx, wire.SessionInspect, wire.SessionParams{SessionID: s.ID}, &s); err != nil {
			s.Problem = err.Error()
		}
		out = append(out, doctor.Finding{
			Part: "codex session", OK: s.Problem == "", Found: "results reach thread " + s.ThreadID, Problem: fmt.Sprintf("thread %s: %s", dash(s.ThreadID), s.Problem),
			Disables: "delivery into this terminal now", Fix: cmp.Or(s.Next, "thole codex sessions inspect "+s.ID),
		})
	}
	return out
}

func printFindings(w io.Writer, findings []doctor.Finding) {
	wide := 0
	for _, f := range findings {
		wide = max(wide, cellsOf(f.Part))
	}
	for _, f := range findings {
		if f.OK {
			state := "ok      "
			if f.Unknown {
				state = "unknown "
			}
			putf(w, "%s %-*s %s\n", state, wide, f.Part, f.Found)
			continue
		}
		state := "optional"
		if f.Needed {
			state = "missing "
		}
		putf(w, "%s %-*s %s\n", state, wide, f.Part, f.Problem)
		if f.Disables != "" {
			putf(w, "         %-*s disables %s\n", wide, "", f.Disables)
		}
		if f.Fix != "" {
			putf(w, "         %-*s try: %s\n", wide, "", f.Fix)
		}
	}
}

// config reads the home's configuration with the given flags on top.
func (e *Env) config(flags map[string]string) (*config.Config, error) {
	home, err := e.home()
	if err != nil {
		return nil, err
	}
	if e.Config != "" {
		return config.LoadFile(e.Config, home, os.Getenv, flags)
	}
	return config.Load(home, os.Getenv, flags)
}

// logger writes what log.level and log.format say; auto is for who sees it: a person at a
// terminal, or else a program.
func (e *Env) logger(cfg *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Log.Level)) // validated
	o := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(e.Err, o))
	}
	if cfg.Log.Format == "auto" && ttyOf(e.rawErr) != nil {
		return slog.New(newTerminalLog(e.Err, level))
	}
	return slog.New(slog.NewTextHandler(e.Err, o))
}

func newConfig(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the configuration"}
	var origin bool
	show := &cobra.Command{
		Use: "show", Short: "List every key with its value", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			entries := cfg.Entries()
			return env.print(entries, func(w io.Writer) {
				for _, e := range entries {
					if origin {
						putf(w, "%-32s %-24q %s\n", e.Key, e.Value, e.Origin)
						continue
					}
					putf(w, "%-32s %q\n", e.Key, e.Value)
				}
			})
		},
	}
	show.Flags().BoolVar(&origin, "origin", false, "say where each value came from")
	env.configFlag(show)
	cmd.AddCommand(show)
	return cmd
}
