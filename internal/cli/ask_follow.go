package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// openAsk is an ask that a person is just asked. Meanwhile nothing else is printed.
type openAsk struct {
	thread string
	ask    app.Ask
	cancel context.CancelFunc
	result chan answered // gets one
}

type answered struct {
	answer app.Answer
	err    error
}

// waits handles the asks that came and are new here.
func (f *follower) waits(ctx context.Context, thread string) error {
	pending, err := f.c.Asks(ctx, thread, true)
	if err != nil {
		return nil //nolint:nilerr // the connection reports its own end
	}
	for _, a := range pending {
		if !f.first("ask", a.ID) {
			continue
		}
		f.pending = append(f.pending, a)
		f.line()
		f.spin.clear()
		switch {
		case !answerable(a):
		case f.asks.on == onAskFail:
			return f.env.errWaits(thread, a)
		case f.asks.on == onAskAllow:
			if ok, err := f.allow(ctx, thread, a); err != nil {
				return err
			} else if !ok {
				return f.env.errWaits(thread, a)
			}
		case f.in != nil:
			f.queue = append(f.queue, a)
		case !f.env.JSON:
			printAsk(f.env.Err, thread, a)
			f.spin.set("waiting for an answer")
		}
	}
	return nil
}

// prompt opens the next ask, if none is open.
func (f *follower) prompt(ctx context.Context) {
	if f.open != nil || len(f.queue) == 0 || len(f.held) > 0 {
		return
	}
	f.line()
	f.spin.clear()
	a := f.queue[0]
	f.queue = f.queue[1:]
	ctx, cancel := context.WithCancel(ctx)
	o := &openAsk{thread: f.thread, ask: a, cancel: cancel, result: make(chan answered, 1)}
	f.open = o
	f.title.set(f.agent + " asks")
	f.title.ring()
	go func() {
		answer, err := f.env.dialog(ctx, f.in, f.agent, a)
		o.result <- answered{answer, err}
	}()
}

// answers is where the open ask's answer comes, nil when none is open.
func (f *follower) answers() <-chan answered {
	if f.open == nil {
		return nil
	}
	return f.open.result
}

// withdraw ends the dialog without an answer.
func (f *follower) withdraw() {
	if f.open == nil {
		return
	}
	f.open.cancel()
	<-f.open.result
	f.open = nil
	putln(f.env.Err)
}

// settle sends what a person answered.
func (f *follower) settle(ctx context.Context, r answered) error {
	o := f.open
	f.open = nil
	o.cancel()
	switch {
	case errors.Is(r.err, errNobody):
		putln(f.env.Err)
		return f.env.errWaits(o.thread, o.ask)
	case r.err != nil:
		return r.err
	}
	f.first("mine", o.ask.ID)
	_, err := f.c.Answer(ctx, o.thread, o.ask.ID, r.answer)
	switch err = fromContract(err); {
	case thole.CodeOf(err) == thole.CodeConflict:
		f.elsewhere(ctx, o.thread, o.ask)
	case thole.CodeOf(err) == thole.CodeInvalid:
		printError(f.env, err)
		f.queue = slices.Insert(f.queue, 0, o.ask)
		return nil
	case err != nil:
		return err
	default:
		f.env.say(f.env.Err, verdictWord(r.answer.Decision))
	}
	f.done(o.ask.ID)
	return nil
}

// done forgets an ask that is settled.
func (f *follower) done(id string) {
	is := func(a app.Ask) bool { return a.ID == id }
	f.pending = slices.DeleteFunc(f.pending, is)
	f.queue = slices.DeleteFunc(f.queue, is)
}

// elsewhere says how an ask ended that another client settled.
func (f *follower) elsewhere(ctx context.Context, thread string, a app.Ask) {
	all, err := f.c.Asks(ctx, thread, false)
	if err != nil {
		return
	}
	if i := slices.IndexFunc(all, func(b app.Ask) bool { return b.ID == a.ID }); i >= 0 {
		f.env.say(f.env.Err, settledBy(all[i]))
	}
}

// resolved takes the news that an ask needs no answer any more.
func (f *follower) resolved(ctx context.Context, n appclient.Notification) {
	var p struct {
		ThreadID  string `json:"threadId"`
		RequestID string `json:"requestId"`
	}
	if strictjson.Unmarshal(n.Params, &p) != nil {
		return
	}
	_, id, _ := strings.Cut(p.RequestID, "/")
	i := slices.IndexFunc(f.pending, func(a app.Ask) bool { return a.ID == id })
	if i < 0 {
		return
	}
	a := f.pending[i]
	if f.open != nil && f.open.ask.ID == id {
		f.withdraw()
	}
	f.done(id)
	if f.in != nil && !f.env.JSON && answerable(a) && !f.told["mine "+id] && f.asks.on != onAskAllow {
		f.elsewhere(ctx, p.ThreadID, a)
	}
}

// urgent reports whether a notification cannot wait for the end of a dialog.
func (f *follower) urgent(n appclient.Notification, turn string) bool {
	var p notice
	switch n.Method {
	case "serverRequest/resolved":
		return true
	case "turn/completed":
		_ = strictjson.Unmarshal(n.Params, &p)
		return p.Turn.ID == turn
	case "thread/deleted":
		_ = strictjson.Unmarshal(n.Params, &p)
		return p.ThreadID == f.thread
	}
	return false
}

// waitsFor is an ask that waits for a person, nil when none does.
func (f *follower) waitsFor() *app.Ask {
	for _, a := range f.pending {
		if event.AskState(a.State) == event.AskPending && answerable(a) {
			return &a
		}
	}
	return nil
}
