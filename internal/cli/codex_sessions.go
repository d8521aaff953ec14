package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newCodexSessions(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "List, inspect and end Codex sessions"}
	var all bool
	list := &cobra.Command{
		Use: "list", Short: "List sessions, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return env.listSessions(cmd.Context(), all) },
	}
	list.Flags().BoolVar(&all, "all", false, "retired ones too")
	inspect := &cobra.Command{
		Use: "inspect SESSION", Short: "Show one session and ask its server", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return env.inspectSession(cmd.Context(), args[0]) },
	}
	end := &cobra.Command{
		Use: "end SESSION", Short: "End a session; a running turn is followed to its end first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s wire.CodexSession
			if err := env.ask(cmd.Context(), wire.SessionLeave, wire.SessionParams{SessionID: args[0]}, &s); err != nil {
				return err
			}
			return env.print(s, func(w io.Writer) { printSession(w, s) })
		},
	}
	cmd.AddCommand(list, inspect, end)
	return cmd
}

func (e *Env) listSessions(ctx context.Context, all bool) error {
	var list []wire.CodexSession
	if err := e.ask(ctx, wire.SessionList, wire.SessionListParams{All: all}, &list); err != nil {
		return err
	}
	return e.print(list, func(w io.Writer) {
		if len(list) == 0 {
			putln(w, "no sessions; open one with: thole codex run --new-thread")
		}
		for _, s := range list {
			putf(w, "%s  %-8s %-8s thread %-36s epoch %d  %s\n", s.ID, s.State, s.Kind, dash(s.ThreadID), s.Epoch, s.Trust)
		}
	})
}

func (e *Env) inspectSession(ctx context.Context, id string) error {
	var s wire.CodexSession
	if err := e.ask(ctx, wire.SessionInspect, wire.SessionParams{SessionID: id}, &s); err != nil {
		return err
	}
	return e.print(s, func(w io.Writer) { printSession(w, s) })
}

func printSession(w io.Writer, s wire.CodexSession) {
	line := func(name, format string, args ...any) {
		putf(w, "%-16s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("session", "%s", s.ID)
	line("state", "%s%s", s.State, after(": ", s.Note))
	line("thread", "%s", dash(s.ThreadID))
	line("codex home", "%s", s.CodexHome)
	alive := "gone"
	if s.ServerAlive {
		alive = "running"
	}
	line("server", "%s, %s, process %d %s, epoch %d", s.Kind, s.Address, s.ServerPID, alive, s.Epoch)
	policy := s.Trust
	if s.Pins {
		policy += ", permissions are pinned for delivered turns"
	}
	if s.Pinned {
		policy += " (now)"
	}
	line("policy", "%s", policy)
	for _, p := range []struct {
		name string
		p    *wire.Permissions
	}{{"startup cap", s.Startup}, {"current", s.Current}, {"effective", s.Effective}} {
		if p.p != nil {
			line(p.name, "approval %v, network %v, write %v (%s, %s)", p.p.Approval, p.p.Network, p.p.Write, p.p.Policy, p.p.Sandbox)
		}
	}
	if s.Drift != "" {
		line("drift", "%s", s.Drift)
	}
	if t := s.Active; t != nil {
		steerable := "not steerable"
		if t.Steerable {
			steerable = "steerable"
		}
		line("running turn", "%s (%s, %s): %s; approval %s, network %s, write %s", dash(t.Turn), t.Kind, steerable, t.Risk, t.Approval, t.Network, t.Write)
	}
	if s.Problem != "" {
		line("not now", "%s", s.Problem)
	}
	if s.Next != "" {
		line("next", "%s", s.Next)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func after(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}
