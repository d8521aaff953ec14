package cli

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/provider/table"
)

func newTUI(env *Env) *cobra.Command {
	var codex, dir string
	cmd := &cobra.Command{
		Use:   "tui [THREAD]",
		Short: "Open the installed Codex TUI on a thread, or on a new one",
		Long: "Runs the TUI with --remote on the home's socket. Any number of TUIs, browsers and scripts may be attached to one\n" +
			"thread, whichever agent runs it. The agent of a new thread works in the current directory, or in that of -C.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			argv := []string{table.Contract}
			if len(args) == 1 {
				if !thole.ValidUUID(args[0]) {
					return thole.Errorf(thole.CodeInvalid, "invalid thread id %q", args[0]).WithHint("thole thread list shows them")
				}
				if dir != "" {
					return thole.Errorf(thole.CodeInvalid, "thread %s works where it was started; -C is for a new one", args[0]).WithHint("leave -C out")
				}
				argv = append(argv, "resume", args[0])
			} else {
				at, err := standing(dir)
				if err != nil {
					return err
				}
				argv = append(argv, "-C", at)
			}
			b, err := env.bridge(cmd.Context())
			if err != nil {
				return err
			}
			path, err := exec.LookPath(codex)
			if err != nil {
				return thole.Errorf(thole.CodeUnavailable, "the Codex TUI is not installed: %w", err).WithHint("%s", table.Of(table.Contract).Install)
			}
			argv = append(argv, "--remote", "unix://"+daemon.Socket(b.home))
			return syscall.Exec(path, argv, os.Environ())
		},
	}
	cmd.Flags().StringVarP(&dir, "cd", "C", "", "`DIR`ectory in which a new thread works (default: the current one)")
	cmd.Flags().StringVar(&codex, table.Contract, table.Contract, "the program of the Codex TUI")
	return cmd
}
