package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/protocol/app"
)

// question is an ask with its thread.
type question struct {
	threads.Thread
	Ask app.Ask
}

// questionView is a question for scripts.
type questionView struct {
	ID       string         `json:"id"`
	ThreadID string         `json:"thread_id"`
	Title    string         `json:"title"`
	Agent    string         `json:"agent"`
	Kind     string         `json:"kind"`
	AskedAt  time.Time      `json:"asked_at"`
	What     string         `json:"what"`
	Text     []string       `json:"text"`
	Reason   string         `json:"reason,omitempty"`
	Choices  []string       `json:"decisions,omitempty"`
	Asked    []app.Question `json:"questions,omitempty"`
}

func (q question) view() questionView {
	what, lines := askText(q.Ask)
	return questionView{
		ID: q.Ask.ID, ThreadID: string(q.ID), Title: q.Title, Agent: q.Provider, Kind: q.Ask.Kind, AskedAt: time.UnixMilli(q.Ask.AskedAtMs).UTC(),
		What: what, Text: append([]string{}, lines...), Reason: q.Ask.Reason, Choices: q.Ask.Decisions, Asked: q.Ask.Questions,
	}
}

func newInbox(env *Env) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use: "inbox", Short: "Answer what agents ask, over all threads", Args: cobra.NoArgs,
		Long: "On a terminal it asks you each open question, the oldest first. Elsewhere, and with --list, it lists them; thole inbox answer\n" +
			"answers one.",
		Example: "  thole inbox\n  thole inbox --list\n  thole inbox answer ASK --decision deny --message \"not on a Friday\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				open, err := env.questions(ctx, c)
				if err != nil {
					return err
				}
				if !list && env.person() && len(open) > 0 {
					return env.answerAll(ctx, c, open)
				}
				out := make([]questionView, len(open))
				for i, q := range open {
					out[i] = q.view()
				}
				return env.print(out, func(w io.Writer) { env.printQuestions(w, open) })
			})
		},
	}
	cmd.Flags().BoolVarP(&list, "list", "l", false, "list them, and ask nothing")
	cmd.AddCommand(newInboxAnswer(env))
	return cmd
}

// questions are the open asks of all threads that a person can answer, the oldest first.
func (e *Env) questions(ctx context.Context, c *appclient.Client) (open []question, err error) {
	list, err := e.find(ctx, threads.FindParams{Active: true})
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.Status != threads.StatusWaiting {
			continue
		}
		asks, err := c.Asks(ctx, string(t.ID), true)
		if err != nil {
			if thole.CodeOf(fromContract(err)) == thole.CodeNotFound {
				continue // deleted meanwhile
			}
			return nil, err
		}
		for _, a := range asks {
			if answerable(a) {
				open = append(open, question{t, a})
			}
		}
	}
	slices.SortStableFunc(open, func(a, b question) int { return cmp.Compare(a.Ask.AskedAtMs, b.Ask.AskedAtMs) })
	return open, nil
}

func (e *Env) printQuestions(w io.Writer, open []question) {
	if len(open) == 0 {
		putln(w, "no agent waits for you")
		return
	}
	for i, q := range open {
		if i > 0 {
			putln(w)
		}
		putf(w, "%s  %s ago, in %s (%s)\n", q.Ask.ID, age(time.Since(time.UnixMilli(q.Ask.AskedAtMs))), q.ID, oneLine(q.Title, 50))
		e.showAsk(w, q.Provider, q.Ask, false)
		for _, asked := range q.Ask.Questions {
			line := asked.ID + ": " + asked.Question
			for k, o := range asked.Options {
				line += map[bool]string{true: " (", false: " | "}[k == 0] + o.Label
			}
			if len(asked.Options) > 0 {
				line += ")"
			}
			e.showTheirs(w, strings.Split(line, "\n"), true)
		}
		putln(w, "  answer with:", e.program("inbox answer "+q.Ask.ID+" "+howToAnswer(q.Ask)))
	}
}

// answerAll asks a person one question after another. One that is settled elsewhere meanwhile
// is left.
func (e *Env) answerAll(ctx context.Context, c *appclient.Client, open []question) error {
	in := &typist{tty: ttyOf(e.In)}
	for i, q := range open {
		if i > 0 {
			putln(e.Err)
		}
		e.paint(e.Err, dim, func(w io.Writer) {
			putf(w, "%d of %d · %s · %s\n", i+1, len(open), q.ID, clip(q.Title, max(e.width(e.Err)-60, 20)))
		})
		if err := e.answerOne(ctx, c, in, q); err != nil {
			if errors.Is(err, errNobody) {
				putln(e.Err)
				return e.errWaits(string(q.ID), q.Ask)
			}
			return err
		}
	}
	return nil
}

// answerOne asks until there is an answer that counts, or none is needed.
func (e *Env) answerOne(ctx context.Context, c *appclient.Client, in *typist, q question) error {
	for {
		asking, cancel := context.WithCancelCause(ctx)
		watched := make(chan app.Ask, 1)
		go func() {
			watched <- settledAsk(asking, c, q)
			cancel(errSettled)
		}()
		answer, err := e.dialog(asking, in, q.Provider, q.Ask)
		cancel(nil)
		now := <-watched
		switch {
		case errors.Is(err, errSettled):
			putln(e.Err)
			e.say(e.Err, settledBy(now))
			return nil
		case err != nil:
			return err
		}
		_, err = c.Answer(ctx, string(q.ID), q.Ask.ID, answer)
		switch err = fromContract(err); thole.CodeOf(err) {
		case "":
			e.say(e.Err, verdictWord(answer.Decision))
			return nil
		case thole.CodeConflict, thole.CodeNotFound, thole.CodeGone:
			e.say(e.Err, "no answer is needed any more: "+err.Error())
			return nil
		case thole.CodeInvalid:
			printError(e, err)
		default:
			return err
		}
	}
}

// errSettled ends a dialog about an ask that is not open any more.
var errSettled = errors.New("the question is settled")

// lookAtAsk is how often an ask is looked at that a person thinks about.
const lookAtAsk = time.Second

// settledAsk waits until an ask is not open any more, or ctx ends.
func settledAsk(ctx context.Context, c *appclient.Client, q question) app.Ask {
	tick := time.NewTicker(lookAtAsk)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return q.Ask
		case <-tick.C:
		}
		all, err := c.Asks(ctx, string(q.ID), false)
		if err != nil {
			<-ctx.Done()
			return q.Ask
		}
		for _, a := range all {
			if a.ID == q.Ask.ID && a.State != q.Ask.State {
				return a
			}
		}
	}
}

func newInboxAnswer(env *Env) *cobra.Command {
	var given answerFlags
	cmd := &cobra.Command{
		Use: "answer ASK", Short: "Answer one question, by its id or the beginning of it", Args: cobra.ExactArgs(1),
		Long:    "Answers an open question of any thread. The first answer counts. On a terminal and without flags it asks you.",
		Example: "  thole inbox answer 0199c4 --decision allow",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return env.completeAsks(cmd.Context(), len(args))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withContract(cmd, func(ctx context.Context, c *appclient.Client) error {
				open, err := env.questions(ctx, c)
				if err != nil {
					return err
				}
				q, err := oneQuestion(open, args[0])
				if err != nil {
					return err
				}
				if given.empty() && env.person() {
					return env.answerAll(ctx, c, []question{q})
				}
				a, err := given.answer()
				if err != nil {
					return err
				}
				ask, err := c.Answer(ctx, string(q.ID), q.Ask.ID, a)
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

func oneQuestion(open []question, text string) (question, error) {
	var found []question
	for _, q := range open {
		if q.Ask.ID == text {
			return q, nil
		}
		if text != "" && strings.HasPrefix(q.Ask.ID, text) {
			found = append(found, q)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return question{}, thole.Errorf(thole.CodeNotFound, "no open question is called %q", text).WithHint("thole inbox --list shows them; it may be answered already")
	}
	lines := []string{}
	for _, q := range found {
		lines = append(lines, q.Ask.ID+"  "+oneLine(q.Title, 50))
	}
	return question{}, thole.Errorf(thole.CodeInvalid, "%q could be any of %d questions:\n%s", text, len(found), strings.Join(lines, "\n")).WithHint("write more of the id")
}

func (e *Env) completeAsks(ctx context.Context, given int) ([]string, cobra.ShellCompDirective) {
	if given > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := e.contract(ctx, appclient.Options{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	open, _ := e.questions(ctx, c)
	out := make([]string, len(open))
	for i, q := range open {
		what, lines := askText(q.Ask)
		out[i] = q.Ask.ID + "\t" + oneLine(what+": "+strings.Join(lines, " "), 60)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
