package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/protocol/app"
)

func newRun(env *Env) *cobra.Command {
	var start startFlags
	cmd := &cobra.Command{
		Use: "run MESSAGE", Short: "Have an agent work on your repository, on a branch of its own, and follow it to the end", Args: cobra.ExactArgs(1),
		Long: "Starts a thread with a message, follows its turn to the end and says what to do with the result. MESSAGE - reads standard\n" +
			"input. Inside a git repository the agent gets a copy of it on a new branch, named after the message; your files are\n" +
			"not touched until you take the changes over. Elsewhere it begins without files.\n" +
			"The exit code is 0 when the turn completed, 4 when it was interrupted and 1 when it failed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := env.message(args[0])
			if err != nil {
				return err
			}
			p, err := start.params(text)
			if err != nil {
				return err
			}
			if p.Name == nil {
				if title := source.Title(text); title != "" {
					p.Name = &title
				}
			}
			var v app.ThreadView
			err = env.follow(cmd, func(ctx context.Context, f *follower) (string, error) {
				if v, err = start.begin(ctx, env, f, p); err != nil {
					return "", err
				}
				if !env.JSON {
					printSource(env.Out, v)
				}
				return f.send(ctx, v.Thread.ID, text, false)
			})
			if v.Thread.ID != "" {
				env.ran(v, err)
			}
			return err
		},
	}
	start.flags(cmd)
	return cmd
}

// ran says how the turn of a run ended and what to do next, to scripts in one line.
func (e *Env) ran(v app.ThreadView, err error) {
	if !e.JSON {
		e.printNext(e.Out, v)
		return
	}
	outcome := app.TurnCompleted
	switch exitCode(err) {
	case 0:
	case 4:
		outcome = app.TurnInterrupted
	case 130: // the waiting ended, not the turn
		outcome = app.TurnInProgress
	default:
		outcome = app.TurnFailed
	}
	_ = json.NewEncoder(e.Out).Encode(map[string]any{"ran": map[string]any{"threadId": v.Thread.ID, "outcome": outcome, "cwd": v.Cwd, "source": v.Files}})
}
