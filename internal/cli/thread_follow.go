package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

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
	events <-chan appclient.Notification
	thread string          // whose turn was started
	inText bool            // the last thing printed was a piece of a message
	told   map[string]bool // asks, and what of which item was printed
	retry  string          // the error that was printed last
	schema json.RawMessage // of the answer, nil for any text
	files  []app.UserInput // that go with the message

	asks    askFlags
	silent  bool     // prints asks alone
	agent   string   // who asks
	in      *typist  // nil where no person answers
	spin    *waiting // what is waited for
	title   *titleBar
	pending []app.Ask                // asked and not settled
	queue   []app.Ask                // of these, what a person is asked next
	open    *openAsk                 // of these, what a person is just asked
	held    []appclient.Notification // what came meanwhile
}

// follow connects, lets begin start something, and prints until the turn that it
// names is over. An empty turn ends at once; "*" goes on for ever.
func (e *Env) follow(cmd *cobra.Command, asks askFlags, begin func(ctx context.Context, f *follower) (turn string, err error)) error {
	if err := asks.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	c, events, done, err := e.listen(ctx, func(r *appclient.Request, push func(appclient.Notification)) {
		push(appclient.Notification{Method: r.Method, Params: r.Params, ID: r.ID()})
	})
	if err != nil {
		return err
	}
	defer done()
	f := &follower{env: e, c: c, events: events, told: map[string]bool{}, asks: asks, agent: "the agent", spin: e.newWaiting(), title: e.newTitleBar(), silent: e.Quiet && !e.JSON}
	if asks.on == onAskPrompt && e.person() {
		f.in = &typist{tty: ttyOf(e.In)}
	}
	f.spin.set("starting")
	turn, err := begin(ctx, f)
	if err != nil || turn == "" {
		return fromContract(err)
	}
	defer func() { f.withdraw(); f.spin.clear(); f.title.end(turn != "*" && ctx.Err() == nil) }()
	f.title.set(f.agent + " works")
	return f.until(ctx, turn)
}

// until prints what happens until the turn is over.
func (f *follower) until(ctx context.Context, turn string) error {
	tick, stop := f.spin.ticks()
	defer stop()
	var late <-chan time.Time
	if f.asks.timeout > 0 {
		late = time.After(f.asks.timeout)
	}
	for {
		if f.open == nil && len(f.held) > 0 {
			n := f.held[0]
			f.held = f.held[1:]
			if done, err := f.show(ctx, n, turn); err != nil || done {
				return err
			}
			continue
		}
		f.prompt(ctx)
		select {
		case n := <-f.events:
			if f.open != nil {
				if n.Method != "serverRequest/resolved" {
					f.held = append(f.held, n)
				}
				if !f.urgent(n, turn) {
					continue
				}
				if n.Method != "serverRequest/resolved" { // nobody waits for the answer any more
					f.withdraw()
					f.env.say(f.env.Err, "no answer is needed any more")
					continue
				}
			}
			if done, err := f.show(ctx, n, turn); err != nil || done {
				return err
			}
		case r := <-f.answers():
			f.title.set(f.agent + " works")
			if err := f.settle(ctx, r); err != nil {
				return err
			}
		case <-tick:
			if f.open == nil && !f.inText {
				f.spin.draw()
			}
		case <-late:
			return f.tooLong(turn)
		case <-ctx.Done():
			f.spin.clear()
			if f.thread == "" || turn == "*" {
				return ctx.Err()
			}
			return (&thole.Error{Err: ctx.Err()}).WithHint("%s", f.goesOn())
		case <-f.c.Done():
			return thole.Errorf(thole.CodeUnavailable, "the connection ended: %w", orClosed(f.c.Err())).
				WithHint("the thread goes on; follow it with: %s", f.env.program("thread tail "+f.thread))
		}
	}
}

// goesOn says what a person who stops looking leaves running.
func (f *follower) goesOn() string {
	return "the turn goes on: " + f.env.program("thread tail "+f.thread) + " follows it, " + f.env.program("thread interrupt "+f.thread) + " stops it"
}

// tooLong ends a waiting that was bounded.
func (f *follower) tooLong(turn string) error {
	f.line()
	if a := f.waitsFor(); a != nil {
		return f.env.errWaits(f.thread, *a)
	}
	if turn == "*" {
		return nil
	}
	return thole.Errorf(thole.CodeBusy, "the turn is not over after %s", f.asks.timeout).WithHint("%s", f.goesOn())
}

// listen connects. What the server sends waits in events; asked gets its requests, and may
// put them there too. done ends the connection.
func (e *Env) listen(ctx context.Context, asked func(r *appclient.Request, push func(appclient.Notification))) (c *appclient.Client, events <-chan appclient.Notification, done func(), err error) {
	queue, stop := make(chan appclient.Notification, 256), make(chan struct{})
	push := func(n appclient.Notification) {
		select {
		case queue <- n:
		case <-stop:
		}
	}
	c, err = e.contract(ctx, appclient.Options{OnNotification: push, OnRequest: func(r *appclient.Request) { asked(r, push) }})
	return c, queue, func() { close(stop); c.Close() }, err
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
	input := append(appclient.Text(text), f.files...)
	if queue {
		q, err := f.c.Enqueue(ctx, app.QueueAddParams{ThreadID: thread, Input: input})
		if err != nil {
			return "", err
		}
		return "", f.env.print(q, func(w io.Writer) { putln(w, "queued", q.ID) })
	}
	t, err := f.c.StartTurn(ctx, app.TurnStartParams{ThreadID: thread, Input: input, OutputSchema: f.schema})
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
	Phase     string         `json:"phase"`
}

// show prints one notification and reports whether the turn is over.
func (f *follower) show(ctx context.Context, n appclient.Notification, turn string) (done bool, err error) {
	var p notice
	_ = strictjson.Unmarshal(n.Params, &p)
	if f.env.JSON && !f.silent {
		line := map[string]any{"method": n.Method, "params": n.Params}
		if n.Seq > 0 {
			line["seq"] = n.Seq
		}
		if n.ID != nil {
			line["id"] = n.ID
		}
		if err := writeJSON(f.env.Out, line); err != nil {
			return false, err
		}
	} else if n.ID == nil && !f.env.JSON {
		f.print(n.Method, p)
	}
	switch {
	case n.ID != nil:
		if err := f.waits(ctx, p.ThreadID); err != nil {
			return false, err
		}
	case n.Method == "serverRequest/resolved":
		f.resolved(ctx, n)
	}
	if n.Method == "thread/deleted" && p.ThreadID == f.thread { // everybody hears of every thread's end
		return true, thole.Errorf(thole.CodeGone, "the thread was deleted")
	}
	if n.Method != "turn/completed" || p.Turn.ID != turn {
		return false, nil
	}
	f.line()
	f.spin.clear()
	return true, turnError(p.Turn)
}

// turnError is how a turn ended, nil when it completed.
func turnError(t app.Turn) error {
	switch t.Status {
	case app.TurnCompleted:
		return nil
	case app.TurnInterrupted:
		return thole.Errorf(thole.CodeConflict, "the turn was interrupted")
	}
	if t.Error == nil {
		return thole.Errorf(codeFailed, "the turn failed")
	}
	code := codeFailed
	if t.Error.Thole != nil && t.Error.Thole.Code == string(thole.ErrBudget) {
		code = thole.CodeBudgetExceeded
	}
	e := thole.Errorf(code, "the turn failed: %s", t.Error.Message)
	if t.Error.Details != nil {
		e = e.WithHint("%s", *t.Error.Details)
	}
	return e
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
		f.spin.clear()
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
	f.phase(method, p)
	if f.silent {
		return
	}
	switch method {
	case "item/agentMessage/delta", "item/commandExecution/outputDelta":
		f.first("text", p.ItemID)
		f.text(p.Delta)
		return
	}
	f.line()
	f.spin.clear()
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
			if f.retry == "" { // its own tries may go on for minutes
				putf(f.env.Err, "thole: %s has no answer from its model service: %s\n", f.agent, p.Error.Message)
				putf(f.env.Err, "  try: it tries again by itself; %s looks at the service and the credential, %s stops the turn\n",
					f.env.program("provider list --check"), f.env.program("thread interrupt "+f.thread))
			} else {
				putln(f.env.Err, "thole: the agent tries again:", p.Error.Message)
			}
			f.retry = p.Error.Message
			f.spin.set("waiting for the model service, which does not answer")
		}
	}
}

// head prints what an item does, once it is known: some agents begin a command
// before they have written it.
func (f *follower) head(it app.Item) {
	switch {
	case it.Type == app.ItemCommandExecution && it.CommandLine() != "":
		if f.first("head", it.ID) {
			putln(f.env.Out, "$", hang(it.CommandLine()))
		}
	case it.Type == app.ItemDynamicToolCall || it.Type == app.ItemMCPToolCall:
		if f.first("head", it.ID) {
			putln(f.env.Out, "#", it.Tool)
		}
	}
}
