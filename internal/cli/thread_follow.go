package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// follower prints what happens in a thread: text for people, one JSON line per
// notification with --json.
type follower struct {
	env    *Env
	c      *appclient.Client
	events chan appclient.Notification
	thread string          // whose turn was started
	inText bool            // the last thing printed was a piece of a message
	told   map[string]bool // asks, and what of which item was printed
	retry  string          // the error that was printed last
}

// follow connects, lets begin start something, and prints until the turn that it
// names is over. An empty turn ends at once; "*" goes on for ever.
func (e *Env) follow(cmd *cobra.Command, begin func(ctx context.Context, f *follower) (turn string, err error)) error {
	ctx := cmd.Context()
	f := &follower{env: e, events: make(chan appclient.Notification, 256), told: map[string]bool{}}
	stop := make(chan struct{})
	push := func(n appclient.Notification) {
		select {
		case f.events <- n:
		case <-stop:
		}
	}
	c, err := e.contract(ctx, appclient.Options{
		OnNotification: push,
		OnRequest: func(r *appclient.Request) {
			push(appclient.Notification{Method: r.Method, Params: r.Params, ID: r.ID()})
		},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	defer close(stop)
	f.c = c
	turn, err := begin(ctx, f)
	if err != nil || turn == "" {
		return fromContract(err)
	}
	for {
		select {
		case n := <-f.events:
			done, err := f.show(ctx, n, turn)
			if err != nil || done {
				return err
			}
		case <-ctx.Done():
			if f.thread == "" || turn == "*" {
				return ctx.Err()
			}
			return (&thole.Error{Err: ctx.Err()}).WithHint("the turn goes on: thole thread tail %s follows it, thole thread interrupt %s stops it", f.thread, f.thread)
		case <-c.Done():
			return thole.Errorf(thole.CodeUnavailable, "the connection ended: %w", orClosed(c.Err())).WithHint("the thread goes on; follow it with: thole thread tail %s", f.thread)
		}
	}
}

func orClosed(err error) error {
	if err == nil {
		return appclient.ErrClosed
	}
	return err
}

// message is what to send: the argument, or standard input for "-".
func (e *Env) message(arg string) (string, error) {
	if arg == "-" {
		raw, err := io.ReadAll(e.In)
		if err != nil {
			return "", thole.Errorf(thole.CodeUnavailable, "read standard input: %w", err)
		}
		arg = string(raw)
	}
	if strings.TrimSpace(arg) == "" {
		return "", thole.Errorf(thole.CodeInvalid, "the message is empty")
	}
	return arg, nil
}

// send starts a turn or, with queue, waits after the running one.
func (f *follower) send(ctx context.Context, thread, text string, queue bool) (string, error) {
	f.thread = thread
	if queue {
		q, err := f.c.Enqueue(ctx, app.QueueAddParams{ThreadID: thread, Input: appclient.Text(text)})
		if err != nil {
			return "", err
		}
		return "", f.env.print(q, func(w io.Writer) { putln(w, "queued", q.ID) })
	}
	t, err := f.c.StartTurn(ctx, app.TurnStartParams{ThreadID: thread, Input: appclient.Text(text)})
	return t.ID, err
}

func (f *follower) started(v app.ThreadView) {
	_ = f.env.print(map[string]any{"thread": v.Thread}, func(w io.Writer) { putln(w, "thread", v.Thread.ID) })
}

// notice is what is read of a notification.
type notice struct {
	ThreadID  string         `json:"threadId"`
	ItemID    string         `json:"itemId"`
	Delta     string         `json:"delta"`
	Message   string         `json:"message"`
	Turn      app.Turn       `json:"turn"`
	Item      app.Item       `json:"item"`
	Error     app.TurnError  `json:"error"`
	WillRetry bool           `json:"willRetry"`
	Limits    app.RateLimits `json:"rateLimits"`
	Plan      []app.PlanStep `json:"plan"`
}

// show prints one notification and reports whether the turn is over.
func (f *follower) show(ctx context.Context, n appclient.Notification, turn string) (done bool, err error) {
	var p notice
	_ = strictjson.Unmarshal(n.Params, &p)
	if f.env.JSON {
		line := map[string]any{"method": n.Method, "params": n.Params}
		if n.Seq > 0 {
			line["seq"] = n.Seq
		}
		if n.ID != nil {
			line["id"] = n.ID
		}
		if err := json.NewEncoder(f.env.Out).Encode(line); err != nil {
			return false, err
		}
	} else if n.ID != nil {
		f.waits(ctx, p.ThreadID)
	} else {
		f.print(n.Method, p)
	}
	if n.Method == "thread/deleted" && p.ThreadID == f.thread { // everybody hears of every thread's end
		return true, thole.Errorf(thole.CodeGone, "the thread was deleted")
	}
	if n.Method != "turn/completed" || p.Turn.ID != turn {
		return false, nil
	}
	f.line()
	switch p.Turn.Status {
	case app.TurnCompleted:
		return true, nil
	case app.TurnInterrupted:
		return true, thole.Errorf(thole.CodeConflict, "the turn was interrupted")
	}
	e := thole.Errorf(thole.CodeInternal, "the turn failed")
	if p.Turn.Error != nil {
		e = thole.Errorf(thole.CodeInternal, "the turn failed: %s", p.Turn.Error.Message)
		if p.Turn.Error.Details != nil {
			e = e.WithHint("%s", *p.Turn.Error.Details)
		}
	}
	return true, e
}

// first reports whether a thing is printed for the first time.
func (f *follower) first(what, id string) bool {
	key := what + " " + id
	told := f.told[key]
	f.told[key] = true
	return !told
}

// text prints a piece of a message or of output.
func (f *follower) text(s string) {
	if s != "" {
		marked, fresh := quotePiece(s, !f.inText)
		put(f.env.Out, marked)
		f.inText = !fresh
	}
}

// line ends a line that was begun.
func (f *follower) line() {
	if f.inText {
		putln(f.env.Out)
		f.inText = false
	}
}

func (f *follower) print(method string, p notice) {
	out, it := f.env.Out, p.Item
	switch method {
	case "item/agentMessage/delta", "item/commandExecution/outputDelta":
		f.first("text", p.ItemID)
		f.text(p.Delta)
		return
	}
	f.line()
	switch method {
	case "item/started", "thole/item/updated":
		f.head(it)
	case "item/completed":
		f.head(it)
		for _, whole := range []*string{it.AggregatedOutput, it.Text} {
			// Some agents emit output only when it is whole.
			if whole != nil && (it.Type == app.ItemCommandExecution || it.Type == app.ItemAgentMessage) && f.first("text", it.ID) {
				f.text(*whole)
				f.line()
			}
		}
		for _, c := range it.Changes {
			putln(out, "~", c.Kind.Type, c.Path)
		}
		for _, in := range it.UserContent() {
			putln(out, ">", hang(in.Text))
		}
	case "turn/plan/updated":
		for _, s := range p.Plan {
			mark := map[string]string{"pending": " ", "inProgress": "~", "completed": "x"}[s.Status]
			putf(out, "[%s] %s\n", mark, s.Step)
		}
	case "warning":
		putln(f.env.Err, "thole:", p.Message)
	case "account/rateLimits/updated":
		if l := p.Limits.Primary; l != nil && (event.Limit{Used: l.UsedPercent}).Near() {
			putf(f.env.Err, "thole: %d%% of the agent's account limit is used\n", l.UsedPercent)
		}
	case "error":
		if p.WillRetry && p.Error.Message != f.retry {
			f.retry = p.Error.Message
			putln(f.env.Err, "thole: the agent tries again:", f.retry)
		}
	}
}

// head prints what an item does, once it is known: some agents begin a command
// before they have written it.
func (f *follower) head(it app.Item) {
	switch {
	case it.Type == app.ItemCommandExecution && it.Command != nil && *it.Command != "":
		if f.first("head", it.ID) {
			putln(f.env.Out, "$", hang(*it.Command))
		}
	case it.Type == app.ItemDynamicToolCall || it.Type == app.ItemMCPToolCall:
		if f.first("head", it.ID) {
			putln(f.env.Out, "#", it.Tool)
		}
	}
}

// waits prints an ask that came; it stays open for the client that answers first.
func (f *follower) waits(ctx context.Context, thread string) {
	pending, err := f.c.Asks(ctx, thread, true)
	if err != nil {
		return
	}
	for _, a := range pending {
		if f.first("ask", a.ID) {
			f.line()
			printAsk(f.env.Err, thread, a)
		}
	}
}
