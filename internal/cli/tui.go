package cli

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/version"
)

func newTUI(env *Env) *cobra.Command {
	var codex, dir string
	var last, pick bool
	cmd := &cobra.Command{
		Use:   "tui [THREAD]",
		Short: "Open the installed Codex TUI on a thread, or on a new one",
		Long: "Runs the TUI with --remote on the home's socket. Any number of TUIs, browsers and scripts may be attached to one\n" +
			"thread, whichever agent runs it. The agent of a new thread works in the current directory, or in that of -C.",
		Example: "  thole tui\n  thole tui --last\n  thole tui --pick",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			argv := []string{table.Contract}
			switch {
			case last:
				argv = append(argv, "resume", "--last")
			case pick:
				argv = append(argv, "resume")
			case len(args) == 1:
				if dir != "" {
					return thole.Errorf(thole.CodeInvalid, "thread %s works where it was started; -C is for a new one", args[0]).WithHint("leave -C out")
				}
				id, err := env.thread(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				argv = append(argv, "resume", id)
			default:
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
			if err := newEnough(cmd.Context(), path); err != nil {
				return err
			}
			if b.server != nil {
				if dir != "" {
					return thole.Errorf(thole.CodeInvalid, "a server does not see directories of this machine").WithHint("leave -C out: the thread begins without files")
				}
				return env.awayTUI(cmd.Context(), b, path, argv)
			}
			argv = append(argv, "--remote", "unix://"+daemon.Socket(b.home))
			return syscall.Exec(path, argv, os.Environ())
		},
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, given []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return env.completeThreads(cmd.Context(), text)
	}
	cmd.Flags().StringVarP(&dir, "cd", "C", "", "`DIR`ectory in which a new thread works (default: the current one)")
	cmd.Flags().BoolVar(&last, "last", false, "open the thread that was used last")
	cmd.Flags().BoolVar(&pick, "pick", false, "choose one of the threads")
	exclude(cmd, "last", "pick", "cd")
	cmd.Flags().StringVar(&codex, table.Contract, table.Contract, "the program of the Codex TUI")
	return cmd
}

// newEnough refuses a TUI that cannot attach. One that does not say its version is tried.
func newEnough(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil //nolint:nilerr // it says itself what is wrong with it
	}
	words := strings.Fields(string(out))
	if len(words) == 0 || !version.Older(words[len(words)-1], version.OldestTUI) {
		return nil
	}
	return thole.Errorf(thole.CodeUnsupported, "the Codex TUI %s is too old: %s is the oldest that attaches", words[len(words)-1], version.OldestTUI).
		WithHint("%s", table.Of(table.Contract).Install)
}
