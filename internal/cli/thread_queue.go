package cli

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/protocol/app"
)

func newThreadQueue(env *Env) *cobra.Command {
	cmd := newQueueList(env)
	cmd.Use, cmd.Short = "queue THREAD", "List and change the messages that wait in a thread"
	for _, of := range []func(*Env) *cobra.Command{newQueueList, newQueueAdd, newQueueMove, newQueueRemove} {
		cmd.AddCommand(byThread(env, of(env)))
	}
	return byThread(env, cmd)
}

func newQueueList(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "list THREAD", Short: "List the messages that wait in a thread, the next one first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				list, err := c.Queue(ctx, args[0])
				if err != nil {
					return err
				}
				return env.print(list, func(w io.Writer) {
					if len(list) == 0 {
						putln(w, "nothing waits")
					}
					for i, q := range list {
						putf(w, "%d  %s  %s\n", i+1, q.ID, queuedText(q))
					}
				})
			})
		},
	}
}

// queuedText is a waiting message on one line.
func queuedText(q app.QueuedSubmission) string {
	var parts []string
	for _, in := range q.Input {
		if in.Text != "" {
			parts = append(parts, in.Text)
		} else {
			parts = append(parts, "["+in.Type+"]")
		}
	}
	return oneLine(strings.Join(parts, " "), 80)
}

func newQueueAdd(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "add THREAD MESSAGE", Short: "Have a message wait after the running turn", Args: cobra.ExactArgs(2),
		Long: "Adds a message at the end of the thread's queue. On an idle thread it starts a turn at once. MESSAGE - reads standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := env.message(args[1])
			if err != nil {
				return err
			}
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				q, err := c.Enqueue(ctx, app.QueueAddParams{ThreadID: args[0], Input: appclient.Text(text)})
				if err != nil {
					return err
				}
				return env.did(q, "queued %s", q.ID)
			})
		},
	}
}

func newQueueMove(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "move THREAD MESSAGE PLACE", Short: "Move a waiting message to another place; 1 is the next one", Args: cobra.ExactArgs(3),
		Long:    "MESSAGE is an id, its beginning, or a place, as queue list shows them.",
		Example: "  thole thread queue move --last 3 1",
		RunE: func(cmd *cobra.Command, args []string) error {
			place, err := strconv.Atoi(args[2])
			if err != nil || place < 1 {
				return thole.Errorf(thole.CodeInvalid, "%q is not a place", args[2]).WithHint("1 is the next message")
			}
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				list, i, err := queued(ctx, c, args[0], args[1])
				if err != nil {
					return err
				}
				ids := make([]string, len(list))
				for k, q := range list {
					ids[k] = q.ID
				}
				id := ids[i]
				ids = slices.Delete(ids, i, i+1)
				place = min(place, len(list))
				ids = slices.Insert(ids, place-1, id)
				if err := c.Call(ctx, "thread/queue/reorder", app.QueueReorderParams{ThreadID: args[0], QueuedSubmissionIDs: ids}, nil); err != nil {
					return err
				}
				return env.did(map[string]any{"id": id, "place": place}, "%s is number %d now", id, place)
			})
		},
	}
}

func newQueueRemove(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "remove THREAD MESSAGE", Short: "Take a waiting message back", Args: cobra.ExactArgs(2), Aliases: []string{"rm"},
		Long: "MESSAGE is an id, its beginning, or a place, as queue list shows them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				list, i, err := queued(ctx, c, args[0], args[1])
				if err != nil {
					return err
				}
				there, err := c.Dequeue(ctx, args[0], list[i].ID)
				if err != nil {
					return err
				}
				if !there {
					return thole.Errorf(thole.CodeGone, "message %s does not wait any more", list[i].ID).WithHint("it was just sent: thole thread interrupt %s stops the turn", args[0])
				}
				return env.did(map[string]string{"removed": list[i].ID}, "removed %s", list[i].ID)
			})
		},
	}
}

// queued finds a waiting message by place, id or the beginning of it.
func queued(ctx context.Context, c *appclient.Client, thread, text string) (list []app.QueuedSubmission, at int, err error) {
	if list, err = c.Queue(ctx, thread); err != nil {
		return nil, 0, err
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(list) && len(text) < 4 {
		return list, n - 1, nil
	}
	var found []int
	for i, q := range list {
		if text != "" && strings.HasPrefix(q.ID, text) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 1:
		return list, found[0], nil
	case 0:
		return nil, 0, thole.Errorf(thole.CodeNotFound, "no message %q waits", text).WithHint("thole thread queue list %s shows them", thread)
	}
	return nil, 0, thole.Errorf(thole.CodeInvalid, "%q could be any of %d messages", text, len(found)).WithHint("write more of the id, or its place: thole thread queue list %s", thread)
}
