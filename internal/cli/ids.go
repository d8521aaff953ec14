package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/threads"
)

// byThread lets a command take its thread, the first argument, by id, by the beginning of
// the id or of the name, or with --last.
func byThread(env *Env, cmd *cobra.Command) *cobra.Command {
	var last bool
	cmd.Flags().BoolVar(&last, "last", false, "the thread that was used last, of this repository if it has one")
	args, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		switch {
		case last:
			given = append([]string{"last"}, given...)
		case len(given) == 0 && args(cmd, given) != nil:
			return thole.Errorf(thole.CodeInvalid, "which thread?").WithHint("%s --last takes the one that was used last; thole thread list shows all", cmd.CommandPath())
		}
		return args(cmd, given)
	}
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		switch {
		case last:
			id, err := env.lastThread(cmd.Context())
			if err != nil {
				return err
			}
			given = append([]string{id}, given...)
		case len(given) > 0:
			id, err := env.thread(cmd.Context(), given[0])
			if thole.CodeOf(err) == thole.CodeNotFound && cmd.HasSubCommands() {
				return unknown(cmd, given[0])
			}
			if err != nil {
				return err
			}
			given[0] = id
		}
		return run(cmd, given)
	}
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, given []string, text string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 || last {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return env.completeThreads(cmd.Context(), text)
		}
	}
	return cmd
}

// thread is the id that a text means.
func (e *Env) thread(ctx context.Context, text string) (string, error) {
	if thole.ValidUUID(text) {
		return text, nil
	}
	if text == "" {
		return "", thole.Errorf(thole.CodeInvalid, "the thread's id is empty").WithHint("thole thread list shows them")
	}
	var list []threads.Thread
	home, err := e.home()
	if err != nil {
		return "", err
	}
	away, err := e.server()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(home); err == nil || away != nil { // else there is none, and looking would make a home
		if list, err = e.meant(ctx, text); err != nil {
			return "", err
		}
	}
	switch len(list) {
	case 0:
		return "", thole.Errorf(thole.CodeNotFound, "no thread is called %q", text).WithHint("thole thread list shows their ids; thole lists those of the repository you are in")
	case 1:
		return string(list[0].ID), nil
	}
	const some = 10
	lines := []string{fmt.Sprintf("%q could be any of %d threads:", text, len(list))}
	for _, t := range list[:min(len(list), some)] {
		lines = append(lines, fmt.Sprintf("%s  %s  %s", t.ID, t.Status, oneLine(t.Title, 50)))
	}
	if len(list) > some {
		lines = append(lines, fmt.Sprintf("… and %d more", len(list)-some))
	}
	return "", thole.Errorf(thole.CodeInvalid, "%s", strings.Join(lines, "\n")).WithHint("write more of the id, or the name")
}

// meant are the threads that a text may mean. A whole name or title comes before the beginning
// of another, and what is in use before what is archived.
func (e *Env) meant(ctx context.Context, text string) ([]threads.Thread, error) {
	for _, archived := range []bool{false, true} {
		var found threads.Found
		if err := e.ask(ctx, threads.MethodFind, threads.FindParams{Text: text, Archived: archived}, &found); err != nil {
			return nil, err
		}
		var whole []threads.Thread
		for _, t := range found.Threads {
			if strings.EqualFold(t.Name, text) || strings.EqualFold(t.Title, text) {
				whole = append(whole, t)
			}
		}
		if len(whole) > 0 {
			return whole, nil
		}
		if len(found.Threads) > 0 {
			return found.Threads, nil
		}
	}
	return nil, nil
}

// lastThread is the thread that was used last: of the repository that the user is in if it
// has one.
func (e *Env) lastThread(ctx context.Context) (string, error) {
	for _, within := range []string{repositoryTop(""), ""} {
		var found threads.Found
		if err := e.ask(ctx, threads.MethodFind, threads.FindParams{Within: within, Limit: 1}, &found); err != nil {
			return "", err
		}
		if len(found.Threads) > 0 {
			return string(found.Threads[0].ID), nil
		}
	}
	return "", thole.Errorf(thole.CodeNotFound, "there is no thread yet").WithHint(`thole run "…" starts one`)
}

// repositoryTop is the top of the working tree that a directory is in, without links; "" for
// none.
func repositoryTop(dir string) string {
	at, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	for ; inRepository(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return ""
}

// completeThreads are the names and ids that begin with a text, for a shell. Nothing is
// started for it.
func (e *Env) completeThreads(ctx context.Context, text string) ([]string, cobra.ShellCompDirective) {
	home, err := e.home()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found threads.Found
	owner := &daemonclient.Client{Home: home, NoStart: true}
	if err := owner.Call(ctx, threads.MethodFind, threads.FindParams{Text: text, Limit: 50}, &found); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, t := range found.Threads {
		about := oneLine(t.Status+", "+t.Title, 60)
		switch {
		case t.Name != "" && strings.HasPrefix(t.Name, text):
			out = append(out, t.Name+"\t"+about)
		case strings.HasPrefix(string(t.ID), text):
			out = append(out, string(t.ID)+"\t"+about)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
