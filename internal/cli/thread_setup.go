package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/protocol/app"
)

func newThreadSetup(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "setup THREAD", Short: "Set a thread's workspace up again, as its repository says", Args: cobra.ExactArgs(1),
		Long: "Runs .thole/setup of the repository, else the commands of its devcontainer.json, else mise install, in the thread's box,\n" +
			"and follows it to its end. A copy of a repository is set up once before its first agent; this does it again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.follow(cmd, askFlags{}, func(ctx context.Context, f *follower) (string, error) {
				f.thread = args[0]
				if _, err := f.c.Attach(ctx, app.AttachParams{ThreadID: args[0]}); err != nil {
					return "", err
				}
				turn, err := f.c.Setup(ctx, args[0])
				if err != nil {
					return "", err
				}
				if turn == nil {
					return "", env.print(map[string]any{"turn_id": nil}, func(w io.Writer) { putln(w, "the setup waits for the end of the running turn") })
				}
				return *turn, nil
			})
		},
	}
}
