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
	var codex string
	cmd := &cobra.Command{
		Use:   "tui [THREAD]",
		Short: "Open the installed Codex TUI on a thread, or on a new one",
		Long: "Runs the TUI with --remote on the home's socket. Any number of TUIs, browsers and scripts may be attached to one\n" +
			"thread, whichever agent runs it.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := env.bridge(cmd.Context())
			if err != nil {
				return err
			}
			path, err := exec.LookPath(codex)
			if err != nil {
				return thole.Errorf(thole.CodeUnavailable, "the Codex TUI is not installed: %w", err).WithHint("%s", table.Of(table.Contract).Install)
			}
			argv := []string{table.Contract}
			if len(args) == 1 {
				if !thole.ValidUUID(args[0]) {
					return thole.Errorf(thole.CodeInvalid, "invalid thread id %q", args[0]).WithHint("thole thread list shows them")
				}
				argv = append(argv, "resume", args[0])
			}
			argv = append(argv, "--remote", "unix://"+daemon.Socket(b.home))
			return syscall.Exec(path, argv, os.Environ())
		},
	}
	cmd.Flags().StringVar(&codex, table.Contract, table.Contract, "the program of the Codex TUI")
	return cmd
}
