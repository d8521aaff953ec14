package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/protocol/app"
)

func newThreadSend(env *Env) *cobra.Command {
	var queue, detach bool
	var asks askFlags
	var files fileFlags
	cmd := &cobra.Command{
		Use: "send THREAD MESSAGE", Short: "Send a message and follow the turn to its end", Args: cobra.ExactArgs(2),
		Long: "Starts a turn, or gives the message to the running one. MESSAGE - reads standard input.\n" +
			"The exit code is 0 when the turn completed, 4 when it was interrupted, 8 when it waits for a human and 9 when it failed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := env.message(args[1])
			if err != nil {
				return err
			}
			parts, err := files.parts()
			if err != nil {
				return err
			}
			return env.follow(cmd, asks, func(ctx context.Context, f *follower) (string, error) {
				f.files = parts
				if !queue && !detach {
					if _, err := f.c.Attach(ctx, app.AttachParams{ThreadID: args[0]}); err != nil {
						return "", err
					}
				}
				th, err := f.c.ReadThread(ctx, args[0])
				if err != nil {
					return "", err
				}
				f.agent = th.ModelProvider
				if err := env.handKeys(ctx, args[0], th.ModelProvider); err != nil {
					return "", err
				}
				turn, err := f.send(ctx, args[0], text, queue)
				if err != nil || queue || !detach {
					return turn, err
				}
				return "", env.print(map[string]string{"turn_id": turn}, func(w io.Writer) { putln(w, "turn", turn) })
			})
		},
	}
	asks.flags(cmd)
	files.flags(cmd)
	cmd.Flags().BoolVar(&queue, "queue", false, "wait after the running turn instead of steering it")
	cmd.Flags().BoolVar(&detach, "detach", false, "print the turn's id and do not follow it")
	return cmd
}

func newThreadTail(env *Env) *cobra.Command {
	var after int64
	var asks askFlags
	cmd := &cobra.Command{
		Use: "tail THREAD", Short: "Follow a thread", Args: cobra.ExactArgs(1),
		Long: "Prints what happens in a thread from now on, or after a cursor: the member seq of a line of --json output.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.follow(cmd, asks, func(ctx context.Context, f *follower) (string, error) {
				f.thread = args[0]
				p := app.AttachParams{ThreadID: args[0]}
				if after >= 0 {
					n := uint64(after)
					p.After = &n
				}
				v, err := f.c.Attach(ctx, p)
				f.agent = v.Thread.ModelProvider
				return "*", err
			})
		},
	}
	asks.flags(cmd)
	cmd.Flags().Int64Var(&after, "after", -1, "continue after this cursor; 0 is the beginning")
	return cmd
}

func newThreadShow(env *Env) *cobra.Command {
	var limit int
	var withCalls bool
	cmd := &cobra.Command{
		Use: "show THREAD", Short: "Print a thread's newest turns and what it waits for", Args: cobra.ExactArgs(1),
		Long: "Prints what was said and done in a thread's newest turns, and for each turn that is over its outcome, what its time\n" +
			"was spent on and what it used. The parts of the time add up to the whole, from the turn's start until its files were\n" +
			"saved: waiting for the model, for tools, for a person, and everything else (queue, restore, start of the agent, sync).",
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				th, err := c.ReadThread(ctx, args[0])
				if err != nil {
					return err
				}
				one := []app.Thread{th}
				if err := env.nameStatus(ctx, one, false); err != nil {
					return err
				}
				th = one[0]
				full := app.ItemsFull
				page, err := c.Turns(ctx, app.TurnsListParams{ThreadID: args[0], PageParams: app.PageParams{Limit: &limit}, ItemsView: &full})
				if err != nil {
					return err
				}
				asks, err := c.Asks(ctx, args[0], false)
				if err != nil {
					return err
				}
				// What is answered is history; that nobody answered it is not.
				asks = slices.DeleteFunc(asks, func(a app.Ask) bool {
					return a.State != string(event.AskPending) && a.State != string(event.AskSelfAnswered)
				})
				queue, err := c.Queue(ctx, args[0])
				if err != nil {
					return err
				}
				var spent executors.TurnsResult
				if err := env.ask(ctx, executors.MethodTurns, executors.TurnsParams{Thread: thole.ThreadID(args[0]), Limit: limit}, &spent); err != nil {
					return err
				}
				turns := withSpent(page.Data, spent.Turns)
				var files executors.Saved
				if err := env.ask(ctx, executors.MethodSaved, executors.SavedParams{Thread: thole.ThreadID(args[0])}, &files); err != nil {
					return err
				}
				var pays []upstream.Source
				_ = env.ask(ctx, daemon.MethodPays, daemon.PaysParams{Thread: thole.ThreadID(args[0])}, &pays) // the next turn says why there is nothing
				all := map[string]any{"thread": th, "turns": turns, "asks": asks, "queue": queue, "files": files, "pays": pays}
				var recorded []turnCalls
				if withCalls {
					if recorded, err = env.recordedCalls(ctx, thole.ThreadID(args[0]), page.Data); err != nil {
						return err
					}
					all["calls"] = recorded
				}
				return env.print(all, func(w io.Writer) {
					putf(w, "thread %s, %s, %s\n", th.ID, th.ModelProvider, statusText(th.Status))
					printPays(w, pays)
					for i := len(turns) - 1; i >= 0; i-- {
						printTurn(w, turns[i].Turn)
						printSpent(w, turns[i])
					}
					if files.Unsaved != "" {
						putln(w, "the files of the last turn are not saved:", files.Unsaved)
					}
					if files.Waits != "" {
						putln(w, "waiting:", files.Waits)
					}
					printCalls(w, recorded)
					for _, q := range queue {
						putln(w, "queued", q.ID, oneLine(q.Input[0].Text, 80))
					}
					for _, a := range asks {
						printAsk(w, th.ID, a)
					}
				})
			})
		},
	}
	cmd.Flags().IntVar(&limit, "turns", 5, "how many turns")
	cmd.Flags().BoolVar(&withCalls, "calls", false, "list the turns' model calls and the files with what was said (gateway.record must be true)")
	return cmd
}

func printTurn(w io.Writer, t app.Turn) {
	for _, it := range t.Items {
		switch {
		case it.Type == app.ItemUserMessage:
			for _, in := range it.UserContent() {
				putln(w, ">", hang(in.Text))
			}
		case it.Type == app.ItemCommandExecution:
			putf(w, "$ %s (%s)\n", hang(it.CommandLine()), plainStatus(it.Status))
		case it.Text != nil:
			putln(w, quote(*it.Text))
		case len(it.Changes) > 0:
			for _, c := range it.Changes {
				putln(w, "~", c.Kind.Type, c.Path)
			}
		case it.Tool != "":
			putf(w, "# %s (%s)\n", it.Tool, plainStatus(it.Status))
		}
	}
	if t.Error != nil {
		putln(w, "error:", t.Error.Message)
	}
}

func printAsk(w io.Writer, thread string, a app.Ask) {
	what := a.Title
	switch {
	case a.Command != "":
		what = "run " + a.Command
	case len(a.Changes) > 0:
		paths := make([]string, len(a.Changes))
		for i, c := range a.Changes {
			paths[i] = c.Kind.Type + " " + c.Path
		}
		what = "change files: " + strings.Join(paths, ", ")
	case what == "":
		what = a.Kind
	}
	if a.State == string(event.AskSelfAnswered) {
		putf(w, "the agent answered itself: %s; nobody allowed it, and turn %s was stopped\n", what, a.TurnID)
		return
	}
	putln(w, "waits for you:", hang(what))
	if a.Reason != "" {
		putln(w, "  because:", hang(a.Reason))
	}
	for _, q := range a.Questions {
		putf(w, "  %s: %s", q.ID, q.Question)
		for i, o := range q.Options {
			put(w, map[bool]string{true: " (", false: " | "}[i == 0], o.Label)
		}
		if len(q.Options) > 0 {
			put(w, ")")
		}
		putln(w)
	}
	others := ""
	if len(a.Questions) == 0 && len(a.Decisions) > 1 && a.Decisions[0] == string(event.DecisionAllow) {
		others = "   # or " + strings.Join(a.Decisions[1:], ", ")
	}
	putf(w, "  answer with: thole thread answer %s %s %s%s\n", thread, a.ID, howToAnswer(a), others)
}
