package cli

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/executors"
)

func newWorkspace(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "workspace", Short: "Work with threads' files"}
	cmd.AddCommand(newWorkspaceExport(env))
	return cmd
}

func newWorkspaceExport(env *Env) *cobra.Command {
	var wait, noWait, raw bool
	cmd := &cobra.Command{
		Use:   "export THREAD DIR",
		Short: "Write a thread's files into a new directory",
		Long: "Writes the files as the last turn that ended left them, once they are saved. If they cannot be saved it says why and writes nothing.\n" +
			"While a turn runs, what it does is not part of them; --wait waits for its end. Links are written as they are.\n" +
			"Hooks of git, and whatever else of a repository's configuration would run a program of the agent's here, is stripped and listed.\n" +
			"The agent's own records, its conversations, are left out.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := thole.ThreadID(args[0])
			dir, err := filepath.Abs(args[1])
			if err != nil {
				return thole.Errorf(thole.CodeInvalid, "export: %w", err)
			}
			var now executors.Saved
			if !noWait {
				if now, err = env.filesSaved(cmd.Context(), id, wait); err != nil {
					return err
				}
			}
			var got executors.ExportResult
			err = env.ask(cmd.Context(), executors.MethodExport, executors.ExportParams{Thread: id, Dir: dir, Raw: raw}, &got)
			if thole.CodeOf(err) == thole.CodeNotFound && now.Running != "" {
				return thole.Errorf(thole.CodeNotFound, "the thread's first turn still runs: no files are saved yet").WithHint("add --wait")
			}
			if err != nil {
				return err
			}
			if now.Running != "" {
				putf(env.Err, "thole: a turn runs; these are the files as of %s, before it (--wait waits for its end)\n", got.Synced.Local().Format(time.DateTime))
			}
			return env.print(got, func(w io.Writer) {
				putf(w, "%s and %s, %s, as synced %s, are in %s\n", count(got.Files, "file"), count(got.Links, "link"), count(got.Bytes, "byte"), got.Synced.Local().Format(time.DateTime), got.Dir)
				for _, path := range got.Skipped {
					putf(w, "left out: %q\n", path)
				}
				for _, what := range got.Stripped {
					putln(w, "stripped, because git would run it:", what)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until no turn runs")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "write what is saved now, however old it is")
	cmd.Flags().BoolVar(&raw, "raw", false, "keep the agent's records, and hooks and configuration of git that run programs: look at them before you type git")
	exclude(cmd, "wait", "no-wait")
	return cmd
}

// filesSaved waits until the files of a thread's last turn are saved.
func (e *Env) filesSaved(ctx context.Context, id thole.ThreadID, turnToo bool) (now executors.Saved, err error) {
	p := executors.SavedParams{Thread: id, Wait: "sync"}
	if turnToo {
		p.Wait = "turn"
	}
	if err := e.ask(ctx, executors.MethodSaved, p, &now); err != nil {
		return now, err
	}
	if now.Unsaved != "" {
		return now, thole.Errorf(thole.CodeUnavailable, "the files of the last turn are not saved: %s", now.Unsaved).
			WithHint("thole thread close %s tries again and waits; --no-wait exports what was saved before", id)
	}
	return now, nil
}
