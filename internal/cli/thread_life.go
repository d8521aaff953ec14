package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/protocol/app"
)

// did prints the one line of a command that succeeded.
func (e *Env) did(v any, format string, args ...any) error {
	return e.print(v, func(w io.Writer) { putf(w, format+"\n", args...) })
}

func newThreadInterrupt(env *Env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "interrupt THREAD | --all", Short: "Ask the running turn to stop", Args: cobra.MaximumNArgs(1),
		Long: "Asks the turn that runs to stop. With --all the turns of all threads are asked to.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return thole.Errorf(thole.CodeInvalid, "name one thread, or say --all").WithHint("thole ps shows what runs")
			}
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				if all {
					return env.interruptAll(ctx, c)
				}
				th, err := c.ReadThread(ctx, args[0])
				if err != nil {
					return err
				}
				if err := c.Interrupt(ctx, args[0], ""); err != nil {
					return err
				}
				if th.Status.Type != app.StatusActive {
					return env.did(map[string]any{"interrupted": []string{}}, "no turn is running")
				}
				return env.did(map[string]any{"interrupted": []string{args[0]}}, "asked the turn of %s to stop", args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "the turns of all threads")
	return cmd
}

func (e *Env) interruptAll(ctx context.Context, c *appclient.Client) error {
	var found threads.Found
	if err := e.ask(ctx, threads.MethodFind, threads.FindParams{Active: true}, &found); err != nil {
		return err
	}
	done := []string{}
	for _, t := range found.Threads {
		if err := c.Interrupt(ctx, string(t.ID), string(t.Turn)); err != nil {
			if th, gone := c.ReadThread(ctx, string(t.ID)); gone != nil || th.Status.Type != app.StatusActive {
				continue // it ended meanwhile
			}
			return err
		}
		done = append(done, string(t.ID))
	}
	return e.did(map[string]any{"interrupted": done}, "asked %s to stop", count(len(done), "turn"))
}

func newThreadArchive(env *Env) *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use: "archive THREAD", Short: "Archive a thread; its history stays", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return env.archive(cmd, args[0], !undo) },
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "bring the thread back")
	_ = cmd.Flags().MarkHidden("undo") // thread unarchive
	return cmd
}

func newThreadUnarchive(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "unarchive THREAD", Short: "Bring an archived thread back", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return env.archive(cmd, args[0], false) },
	}
}

func (e *Env) archive(cmd *cobra.Command, id string, away bool) error {
	method, word := "thread/unarchive", "back in the list"
	if away {
		method, word = "thread/archive", "archived"
	}
	return e.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
		if err := c.Call(ctx, method, app.ThreadParams{ThreadID: id}, nil); err != nil {
			return err
		}
		return e.did(map[string]any{"id": id, "archived": away}, "thread %s is %s", id, word)
	})
}

func newThreadRename(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "rename THREAD TITLE", Short: "Give a thread another title", Args: cobra.ExactArgs(2),
		Example: `  thole thread rename 0199c4 "Faster tests"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				if err := c.Call(ctx, "thread/name/set", app.ThreadNameParams{ThreadID: args[0], Name: args[1]}, nil); err != nil {
					return err
				}
				return env.did(map[string]string{"id": args[0], "title": args[1]}, "thread %s is called %s", args[0], args[1])
			})
		},
	}
}

func newThreadFork(env *Env) *cobra.Command {
	var after, before, title string
	cmd := &cobra.Command{
		Use: "fork THREAD", Short: "Copy a thread, to try something else from there on", Args: cobra.ExactArgs(1),
		Long: "Makes a thread with the history and the files of another, whole or up to one of its turns, and prints its id. The other\n" +
			"one stays as it is.",
		Example: "  thole thread fork --last\n  thole thread fork 0199c4 --before TURN",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := app.ThreadForkParams{ThreadID: args[0], ExcludeTurns: true}
			if after != "" {
				p.LastTurnID = &after
			}
			if before != "" {
				p.BeforeTurnID = &before
			}
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				v, err := c.Fork(ctx, p)
				if err != nil {
					return err
				}
				if title != "" {
					if err := c.Call(ctx, "thread/name/set", app.ThreadNameParams{ThreadID: v.Thread.ID, Name: title}, nil); err != nil {
						return err
					}
				}
				return env.print(map[string]string{"id": v.Thread.ID, "forked_from": args[0]}, func(w io.Writer) { putln(w, "thread", v.Thread.ID) })
			})
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "keep the history up to this `TURN`, as thread show names it")
	cmd.Flags().StringVar(&before, "before", "", "keep the history before this `TURN`")
	cmd.Flags().StringVar(&title, "title", "", "title of the new thread")
	exclude(cmd, "after", "before")
	return cmd
}
