package cli

import (
	"io"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/executor"
)

func newExecutorList(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List executors and whether their files are saved", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out []executors.Executor
			if err := env.ask(cmd.Context(), executors.MethodList, executors.ListParams{}, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) {
				t := newTable(w)
				putf(t, "EXECUTOR\tTHREAD\tSTATE\tLAST ACTIVE\tLAST SAVED\tFILES\n")
				for _, x := range out {
					putf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, x.Thread, x.State, local(x.LastActive), local(x.LastSync), savedText(x))
				}
				_ = t.Flush()
			})
		},
	}
}

func savedText(x executors.Executor) string {
	switch x.Sync {
	case executor.SyncFailed:
		return "not saved: " + x.SyncError
	case executor.SyncRunning:
		return "being saved"
	case executor.SyncSuccess:
		return "saved"
	case executor.SyncIdle:
	}
	return "never saved"
}

func newExecutorShow(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "show EXECUTOR|THREAD", Short: "Show one executor and how its last sync went", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.showExecutors(cmd, executors.MethodList, args[0])
		},
	}
}

func newExecutorSync(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "sync EXECUTOR|THREAD", Short: "Save an executor's files now, after the turn that runs, and say how that went", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.showExecutors(cmd, executors.MethodSync, args[0])
		},
	}
}

func (e *Env) showExecutors(cmd *cobra.Command, method, id string) error {
	var out []executors.Executor
	if err := e.ask(cmd.Context(), method, executors.ListParams{ID: id}, &out); err != nil {
		return err
	}
	if err := e.print(out, func(w io.Writer) {
		for _, x := range out {
			putf(w, "executor %s of thread %s is %s (%s)\n", x.ID, x.Thread, x.State, x.Driver)
			putf(w, "  last active  %s\n  last saved   %s\n  last try     %s %s\n  files        %s\n", local(x.LastActive), local(x.LastSync), local(x.SyncStarted), x.SyncReason, savedText(x))
		}
	}); err != nil {
		return err
	}
	for _, x := range out {
		if method == executors.MethodSync && x.Sync == executor.SyncFailed {
			return thole.Errorf(thole.CodeUnavailable, "the files are not saved: %s", x.SyncError).WithHint("they are still in the executor; thole executor sync %s tries again", x.Thread)
		}
	}
	return nil
}
