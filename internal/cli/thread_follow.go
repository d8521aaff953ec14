package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/protocol/app"
)

// follower prints what happens in a thread: text for people, one JSON line per
// notification with --json.
type follower struct {
	env    *Env
	c      *appclient.Client
	events chan appclient.Notification
	inText bool // the last thing printed was a piece of a message
	asked  map[string]bool
}

// follow connects, lets begin start something, and prints until the turn that it
// names is over. An empty turn ends at once; "*" goes on for ever.
func (e *Env) follow(cmd *cobra.Command, begin func(ctx context.Context, f *follower) (turn string, err error)) error {
	ctx := cmd.Context()
	f := &follower{env: e, events: make(chan appclient.Notification, 256), asked: map[string]bool{}}
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
			return ctx.Err()
		case <-c.Done():
			return thole.Errorf(thole.CodeUnavailable, "the connection ended: %w", orClosed(c.Err())).WithHint("the thread goes on; follow it with: thole thread tail")
		}
	}
}

func orClosed(err error) error {
	if err == nil {
		return appclient.ErrClosed
	}
	return err
}

// send starts a turn or, with queue, waits behind the running one.
func (f *follower) send(ctx context.Context, thread, text string, queue bool) (string, error) {
	if text == "-" {
		raw, err := io.ReadAll(f.env.In)
		if err != nil {
			return "", err
		}
		text = string(raw)
	}
	if queue {
		q, err := f.c.Enqueue(ctx, app.QueueAddParams{ThreadID: thread, Input: appclient.Text(text)})
		if err != nil {
			return "", err
		}
		return "", f.env.print(q, func(w io.Writer) { fmt.Fprintln(w, "queued", q.ID) })
	}
	t, err := f.c.StartTurn(ctx, app.TurnStartParams{ThreadID: thread, Input: appclient.Text(text)})
	return t.ID, err
}

func (f *follower) started(v app.ThreadView) {
	_ = f.env.print(map[string]any{"thread": v.Thread}, func(w io.Writer) { fmt.Fprintln(w, "thread", v.Thread.ID) })
}

// show prints one notification and reports whether the turn is over.
func (f *follower) show(ctx context.Context, n appclient.Notification, turn string) (done bool, err error) {
	var p struct {
		ThreadID string
		Turn     app.Turn
		Item     app.Item
		Delta    string
		Message  string
		Error    app.TurnError
		Plan     []app.PlanStep
	}
	_ = json.Unmarshal(n.Params, &p)
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
		f.print(n.Method, p.Delta, p.Message, p.Item, p.Plan)
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

func (f *follower) line() {
	if f.inText {
		fmt.Fprintln(f.env.Out)
		f.inText = false
	}
}

func (f *follower) print(method, delta, message string, it app.Item, plan []app.PlanStep) {
	out := f.env.Out
	switch method {
	case "item/agentMessage/delta":
		fmt.Fprint(out, delta)
		f.inText = true
		return
	case "item/commandExecution/outputDelta":
		fmt.Fprint(out, delta)
		f.inText = !strings.HasSuffix(delta, "\n")
		return
	}
	f.line()
	switch method {
	case "item/started":
		switch {
		case it.Type == app.ItemCommandExecution && it.Command != nil:
			fmt.Fprintln(out, "$", *it.Command)
		case it.Type == app.ItemDynamicToolCall || it.Type == app.ItemMCPToolCall:
			fmt.Fprintln(out, "#", it.Tool)
		}
	case "item/completed":
		for _, c := range it.Changes {
			fmt.Fprintln(out, "~", c.Kind.Type, c.Path)
		}
		for _, in := range it.UserContent() {
			fmt.Fprintln(out, ">", in.Text)
		}
	case "turn/plan/updated":
		for _, s := range plan {
			mark := map[string]string{"pending": " ", "inProgress": "~", "completed": "x"}[s.Status]
			fmt.Fprintf(out, "[%s] %s\n", mark, s.Step)
		}
	case "warning":
		fmt.Fprintln(f.env.Err, "thole:", message)
	}
}

// waits tells of an ask that came; it stays open for whoever answers first.
func (f *follower) waits(ctx context.Context, thread string) {
	pending, err := f.c.Asks(ctx, thread, true)
	if err != nil {
		return
	}
	for _, a := range pending {
		if !f.asked[a.ID] {
			f.asked[a.ID] = true
			f.line()
			printAsk(f.env.Err, thread, a)
		}
	}
}
