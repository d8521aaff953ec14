package cli

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/provider/table"
)

// guardFirstRun makes the commands that send a message to an agent say that there is none,
// before a home, a thread or a branch is made.
func guardFirstRun(env *Env, root *cobra.Command) {
	for _, path := range [][]string{{"run"}, {"thread", "start"}} {
		cmd, _, err := root.Find(path)
		if err != nil || cmd.RunE == nil {
			continue
		}
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] != "-" && strings.TrimSpace(args[0]) != "" { // an empty message has its own error
				if err := env.needAgent(cmd); err != nil {
					return err
				}
			}
			return run(cmd, args)
		}
	}
}

func (e *Env) needAgent(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("model"); f != nil {
		if name, _, ok := strings.Cut(f.Value.String(), "/"); ok && !installable(name) {
			return nil // the scripted agent
		}
	}
	if s, err := e.server(); err != nil || s != nil {
		return err // the server knows its agents
	}
	home, err := e.home()
	if err != nil {
		return err
	}
	var st wire.Status
	err = (&daemonclient.Client{Home: home, NoStart: true}).Call(cmd.Context(), wire.DaemonStatus, struct{}{}, &st)
	switch {
	case err == nil && st.Role != "daemon": // a person started it, maybe as a demo or in another shell: it knows its agents
		if models, err := e.models(cmd.Context()); err != nil || len(models) > 0 {
			return nil //nolint:nilerr // it answers for itself
		}
		return noAgent("there is no agent on this machine, and nothing was made")
	case err != nil && !errors.Is(err, daemonclient.ErrNobody):
		return nil
	}
	cfg, err := e.config(nil)
	if err != nil {
		return err
	}
	if e.agentInstalled(cmd.Context(), cfg.Providers) {
		return nil
	}
	return noAgent("there is no agent on this machine, and nothing was made")
}

// noAgent says so, with what installs one.
func noAgent(text string) *thole.Error {
	return thole.Errorf(thole.CodeUnavailable, "%s", text).WithHint("%s", strings.Join(append(installs(), "or look around first: thole up --demo"), "\n"))
}

// agentInstalled asks the PATH first, because asking a CLI takes a while.
func (e *Env) agentInstalled(ctx context.Context, at config.Providers) bool {
	for _, row := range table.CLIs {
		if row.Install == "" {
			continue
		}
		if _, err := exec.LookPath(row.Name); err == nil {
			return true
		}
	}
	if at.Codex+at.Claude+at.Opencode != "" {
		return true // named; a wrong path is said by name
	}
	infos, err := e.probe(ctx, "")
	if err != nil {
		return true
	}
	for _, i := range infos {
		if i.Available && installable(i.Name) {
			return true
		}
	}
	return false
}

// installable: the agent is one that users install, not the scripted one.
func installable(name string) bool {
	return slices.ContainsFunc(table.CLIs, func(row table.CLI) bool { return row.Name == name && row.Install != "" })
}

// installs are the commands that install an agent, one of which is enough.
func installs() (out []string) {
	for _, row := range table.CLIs {
		if row.Install != "" {
			out = append(out, row.Install+"   # "+row.Name)
		}
	}
	return out
}

// modelName is a flag: PROVIDER/MODEL, or a bare model of Codex.
type modelName string

func (m *modelName) String() string { return string(*m) }
func (m *modelName) Type() string   { return "string" }

// Set refuses an agent that does not exist: its model would go to another one. An agent's
// name alone means its own default, never a model of Codex.
func (m *modelName) Set(s string) error {
	name, _, ok := strings.Cut(s, "/")
	known := slices.Contains(providerNames(), name)
	switch {
	case known && !ok:
		s += "/default"
	case ok && !known:
		return thole.Errorf(thole.CodeInvalid, "unknown agent %q in model %q", name, s).
			WithHint("begin with %s; a model of %s whose name has a slash is %s/%s", strings.Join(providerNames(), "/, ")+"/", table.Contract, table.Contract, s)
	}
	*m = modelName(s)
	return nil
}
