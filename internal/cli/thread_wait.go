package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/platform/usage"
	"github.com/tholehq/thole/protocol/app"
)

func newThreadWait(env *Env) *cobra.Command {
	var asks askFlags
	cmd := &cobra.Command{
		Use: "wait THREAD", Short: "Wait until the running turn of a thread is over", Args: cobra.ExactArgs(1),
		Long: "Waits for the end of the turn that runs, or takes the last one if none does, and prints how it ended. The exit code is 0\n" +
			"when it completed, 4 when it was interrupted, 5 after --timeout, 8 when it waits for a human and 9 when it failed. A\n" +
			"question of the agent is asked on a terminal; elsewhere it ends the waiting unless --on-ask says otherwise.",
		Example: "  thole thread wait --last --timeout 10m",
		RunE: func(cmd *cobra.Command, args []string) error {
			if asks.on == onAskPrompt && !env.person() {
				asks.on = onAskFail
			}
			last, err := env.waitTurn(cmd, asks, args[0])
			if err != nil {
				return err
			}
			return env.did(map[string]string{"id": args[0], "turn_id": last, "status": app.TurnCompleted}, "turn %s is completed", last)
		},
	}
	asks.flags(cmd)
	return cmd
}

// waitTurn waits for the running turn, or takes the last one.
func (e *Env) waitTurn(cmd *cobra.Command, asks askFlags, thread string) (last string, err error) {
	err = e.follow(cmd, asks, func(ctx context.Context, f *follower) (string, error) {
		f.thread, f.silent = thread, true
		v, err := f.c.Attach(ctx, app.AttachParams{ThreadID: thread, NoDeltas: true})
		if err != nil {
			return "", err
		}
		f.agent = v.Thread.ModelProvider
		if v.Turn != nil {
			last = v.Turn.ID
			f.spin.set("working")
			return last, nil
		}
		one := 1
		page, err := f.c.Turns(ctx, app.TurnsListParams{ThreadID: thread, PageParams: app.PageParams{Limit: &one}})
		if err != nil || len(page.Data) == 0 {
			return "", err
		}
		last = page.Data[0].ID
		return "", turnError(page.Data[0])
	})
	return last, err
}

func newThreadUsage(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "usage THREAD", Short: "Show the tokens and the cost of a thread, by model", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := spend.UsageParams{Thread: args[0], By: string(usage.ByModel)}
			var u spend.Usage
			if err := env.ask(cmd.Context(), spend.MethodUsage, p, &u); err != nil {
				return err
			}
			return env.print(u, func(w io.Writer) { printUsage(w, p.By, u) })
		},
	}
}
