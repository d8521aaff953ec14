package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

func newRun(env *Env) *cobra.Command {
	var start startFlags
	var asks askFlags
	var files fileFlags
	var schemaFile string
	cmd := &cobra.Command{
		Use: "run MESSAGE", Short: "Have an agent work on your repository, on a branch of its own, and follow it to the end", Args: cobra.ExactArgs(1),
		Long: "Starts a thread with a message, follows its turn to the end and says what to do with the result. MESSAGE - reads standard\n" +
			"input. Inside a git repository the agent gets a copy of it on a new branch, named after the message; your files are\n" +
			"not touched until you take the changes over. Elsewhere it begins without files.\n" +
			"What the agent asks is asked on your terminal; --on-ask says what happens in a script. Ctrl-C ends the following, not the turn.\n" +
			"The exit code is 0 when the turn completed, 4 when it was interrupted, 8 when it waits for a human and 9 when it failed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := env.message(args[0])
			if err != nil {
				return err
			}
			schema, err := env.outputSchema(schemaFile)
			if err != nil {
				return err
			}
			parts, err := files.parts()
			if err != nil {
				return err
			}
			p, err := start.params(env, text)
			if err != nil {
				return err
			}
			if p.Name == nil {
				if title := fold.Title(text); title != "" {
					p.Name = &title
				}
			}
			var v app.ThreadView
			began := time.Now()
			err = env.follow(cmd, asks, func(ctx context.Context, f *follower) (string, error) {
				if v, err = start.begin(ctx, env, f, p); err != nil {
					return "", err
				}
				if !env.JSON && !env.Quiet {
					printSource(env.Out, v)
				}
				f.schema, f.files = schema, parts
				return f.send(ctx, v.Thread.ID, text, false)
			})
			if v.Thread.ID == "" {
				return err
			}
			return env.ran(cmd.Context(), v, began, err)
		},
	}
	start.flags(cmd)
	asks.flags(cmd)
	files.flags(cmd)
	cmd.Flags().StringVar(&schemaFile, "output-schema", "", "have the agent answer with JSON that satisfies the JSON schema in `FILE`, - for standard input")
	return cmd
}

// maxSchemaFile is more than any schema that the server takes.
const maxSchemaFile = 1 << 20

// outputSchema reads the schema of an answer, nil without a file. The server judges it, but
// nothing is started for a file that holds no JSON.
func (e *Env) outputSchema(file string) (json.RawMessage, error) {
	if file == "" {
		return nil, nil
	}
	from := e.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "read output schema: %w", err)
		}
		defer f.Close()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxSchemaFile))
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "read output schema: %w", err)
	}
	var object map[string]json.RawMessage
	if err := strictjson.Unmarshal(raw, &object); err != nil || object == nil {
		return nil, thole.Errorf(thole.CodeInvalid, "output schema %s is not a JSON object", file).WithHint(`a schema begins {"type":"object","properties":…`)
	}
	return raw, nil
}
