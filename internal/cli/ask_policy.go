package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/protocol/app"
)

// What becomes of an ask while a turn is followed.
const (
	onAskPrompt = ""      // a person at the terminal answers
	onAskWait   = "wait"  // it stays open until another client answers
	onAskFail   = "fail"  // the command ends; the ask stays open
	onAskAllow  = "allow" // approvals are given; what needs words ends the command
)

// askFlags bound how a turn is waited for.
type askFlags struct {
	on      string
	timeout time.Duration
}

func (f *askFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.on, "on-ask", "", "when the agent asks: fail (exit code 8), wait for an answer from elsewhere, or allow (default: ask on a terminal, else wait)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "stop waiting after this long, with exit code 5, or 8 if a question is open; the turn goes on")
	_ = cmd.RegisterFlagCompletionFunc("on-ask", cobra.FixedCompletions([]string{onAskFail, onAskWait, onAskAllow}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *askFlags) check() error {
	switch f.on {
	case onAskPrompt, onAskWait, onAskFail, onAskAllow:
	default:
		return thole.Errorf(thole.CodeInvalid, "unknown --on-ask %q", f.on).WithHint("use fail, wait or allow")
	}
	if f.timeout < 0 {
		return thole.Errorf(thole.CodeInvalid, "--timeout %s is negative", f.timeout)
	}
	return nil
}

// errWaits says that only a person can bring a turn on.
func (e *Env) errWaits(thread string, a app.Ask) error {
	what, lines := askText(a)
	if len(lines) > 0 {
		what += ": " + oneLine(lines[0], 80)
	}
	return thole.Errorf(thole.CodeHeld, "the agent waits for a human; it wants to %s", what).
		WithHint("the question stays open: %s answers it, %s stops the turn", e.program("inbox"), e.program("thread interrupt "+thread))
}

// program is a command line that reaches this home.
func (e *Env) program(args string) string {
	if e.Home != "" {
		return "thole --home " + e.Home + " " + args
	}
	return "thole " + args
}

// allow gives an approval that a script wants given, and reports whether it could.
func (f *follower) allow(ctx context.Context, thread string, a app.Ask) (bool, error) {
	if !event.AskKind(a.Kind).Approval() {
		return false, nil
	}
	_, err := f.c.Answer(ctx, thread, a.ID, app.Answer{Decision: string(event.DecisionAllow)})
	if err = fromContract(err); err != nil && thole.CodeOf(err) != thole.CodeConflict { // another client was faster
		return false, err
	}
	if !f.env.JSON {
		what, lines := askText(a)
		putln(f.env.Err, "allowed to", what)
		f.env.showTheirs(f.env.Err, lines, false)
	}
	return true, nil
}

// settledBy says in words how an ask ended that nobody answered here.
func settledBy(a app.Ask) string {
	switch event.AskState(a.State) {
	case event.AskExpired:
		return "the question expired"
	case event.AskCanceled:
		return "the agent asks no more"
	case event.AskSelfAnswered:
		return "the agent answered itself; nobody allowed it"
	}
	how := "answered"
	if a.Answer != nil {
		how = verdictWord(a.Answer.Decision)
	}
	by := a.AnsweredBy
	if by == "" {
		by = "another client"
	}
	return how + " elsewhere, by " + by
}

func verdictWord(decision string) string {
	switch event.Decision(decision) {
	case event.DecisionAllow:
		return "allowed"
	case event.DecisionAlways:
		return "always allowed"
	case event.DecisionDeny:
		return "denied"
	case event.DecisionCancel:
		return "denied, and the turn stopped,"
	}
	return "answered"
}

func (e *Env) say(w io.Writer, line string) { putln(w, "  "+line) }
