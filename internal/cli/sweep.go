package cli

import (
	"io"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/executors"
)

func newSweep(env *Env) *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "sweep", Short: "Stop idle executors, remove old ones, sync stale ones: now, not at the next minute", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !once {
				return thole.Errorf(thole.CodeInvalid, "the owner of the home sweeps every minute by itself").WithHint("thole sweep --once sweeps now")
			}
			if err := env.ask(cmd.Context(), executors.MethodSweep, struct{}{}, nil); err != nil {
				return err
			}
			return env.print(map[string]bool{"swept": true}, func(w io.Writer) { putln(w, "swept; what is due waits for the running turns") })
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "sweep once and return")
	return cmd
}
