package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/protocol/app"
)

func newThreadAnswer(env *Env) *cobra.Command {
	var given answerFlags
	cmd := &cobra.Command{
		Use: "answer THREAD [ASK]", Short: "Answer what a thread waits for", Args: cobra.RangeArgs(1, 2),
		Long: "Answers an ask; without its id, the only one that is pending. The first answer counts. thole inbox answers those of all threads.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := given.answer()
			if err != nil {
				return err
			}
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				id := ""
				if len(args) == 2 {
					id = args[1]
				} else {
					pending, err := c.Asks(ctx, args[0], true)
					if err != nil {
						return err
					}
					if len(pending) != 1 {
						return thole.Errorf(thole.CodeConflict, "%d asks are pending", len(pending)).WithHint("thole thread show %s lists them", args[0])
					}
					id = pending[0].ID
				}
				ask, err := c.Answer(ctx, args[0], id, a)
				if err != nil {
					return err
				}
				return env.did(ask, "answered %s", ask.ID)
			})
		},
	}
	given.flags(cmd)
	return cmd
}

// answerFlags are an answer as flags say it.
type answerFlags struct {
	decision, message, raw string
	answers                []string
}

func (f *answerFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.decision, "decision", "", "allow, always, deny or cancel")
	cmd.Flags().StringVar(&f.message, "message", "", "message for the agent with a denial")
	cmd.Flags().StringArrayVar(&f.answers, "answer", nil, "QUESTION=TEXT, once per choice")
	cmd.Flags().StringVar(&f.raw, "result", "", "JSON: a tool's output or an elicitation's content")
}

func (f *answerFlags) empty() bool { return f.decision == "" && f.raw == "" && len(f.answers) == 0 }

func (f *answerFlags) answer() (app.Answer, error) {
	a := app.Answer{Decision: f.decision, Message: f.message}
	if f.raw != "" {
		if !json.Valid([]byte(f.raw)) {
			return a, thole.Errorf(thole.CodeInvalid, "--result is not JSON")
		}
		a.Result = json.RawMessage(f.raw)
	}
	for _, s := range f.answers {
		q, text, ok := strings.Cut(s, "=")
		if !ok {
			return a, thole.Errorf(thole.CodeInvalid, "--answer %q is not QUESTION=TEXT", s)
		}
		if a.Answers == nil {
			a.Answers = map[string][]string{}
		}
		a.Answers[q] = append(a.Answers[q], text)
	}
	if f.empty() {
		return a, thole.Errorf(thole.CodeInvalid, "no answer").WithHint("pass --decision, --answer or --result")
	}
	return a, nil
}
