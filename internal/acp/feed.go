package acp

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// feed is what happens in one thread, in order, whichever owner the home has meanwhile.
// The channel has no buffer: a reader that does not take an event holds up the
// connection, and the owner ends it. Then the feed attaches again after the reader's
// cursor.
type feed struct {
	dial   func(context.Context, appclient.Options) (*appclient.Client, error)
	thread string
	events chan any // notice, attached, lost or failed
}

// notice is a notification, or a request of the owner's when ask is true.
type notice struct {
	appclient.Notification
	ask bool
}

// attached is the thread at the place where the notices that follow go on. fresh says
// that they begin there; otherwise they begin after the reader's cursor.
type attached struct {
	app.AttachResult
	fresh bool
}

// lost asks the reader for its cursor, nil for none.
type lost struct{ after chan<- *uint64 }

// failed says that the thread cannot be followed: for ever, or for now.
type failed struct {
	err   error
	final bool
}

// unwanted are notifications that no editor is sent anything for.
var unwanted = []string{"turn/diff/updated", "thole/item/inputDelta", "account/rateLimits/updated", "thole/turn/phase", "thread/started"}

// run follows the thread until ctx ends or it is gone.
func (f *feed) run(ctx context.Context) {
	var after *uint64
	for pause := redial.Begin(); ctx.Err() == nil; {
		c, got, err := f.attach(ctx, after)
		switch {
		case err == nil:
			pause.Reset()
			select {
			case <-c.Done():
			case <-ctx.Done():
			}
			c.Close()
			cursor := make(chan *uint64, 1)
			if !f.push(ctx, lost{cursor}) {
				return
			}
			after = <-cursor
			continue
		case got && class(err) == "gone" && after != nil:
			after = nil
			continue
		case got && (class(err) == "not_found" || class(err) == "gone" || class(err) == "invalid"):
			f.push(ctx, failed{err, true})
			return
		}
		if !f.push(ctx, failed{err, false}) || pause.Wait(ctx) != nil {
			return
		}
	}
}

func (f *feed) push(ctx context.Context, event any) bool {
	select {
	case f.events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// attach makes a connection and hands its beginning to the reader. answered says that
// the owner itself refused.
func (f *feed) attach(ctx context.Context, after *uint64) (_ *appclient.Client, answered bool, _ error) {
	// What comes before the answer is news of all threads. What comes after it waits until
	// the reader has the answer.
	var begun atomic.Bool
	ready := make(chan struct{})
	take := func(n appclient.Notification, ask bool) {
		if !begun.Load() {
			return
		}
		select {
		case <-ready:
			f.push(ctx, notice{n, ask})
		case <-ctx.Done():
		}
	}
	c, err := f.dial(ctx, appclient.Options{
		OptOut:         unwanted,
		OnNotification: func(n appclient.Notification) { take(n, false) },
		OnRequest:      func(r *appclient.Request) { take(appclient.Notification{Method: r.Method, Params: r.Params}, true) },
	})
	if err != nil {
		return nil, false, err
	}
	type answer struct {
		raw json.RawMessage
		err error
	}
	got := make(chan answer, 1)
	err = c.Go(ctx, "thole/thread/attach", app.AttachParams{ThreadID: f.thread, After: after}, func(raw json.RawMessage, err error) {
		begun.Store(err == nil)
		got <- answer{raw, err}
	})
	if err != nil {
		c.Close()
		return nil, false, err
	}
	a := <-got // an end of the connection is an answer too
	at := attached{fresh: after == nil}
	if a.err == nil {
		a.err = strictjson.Unmarshal(a.raw, &at.AttachResult)
	}
	if a.err == nil && !f.push(ctx, at) {
		a.err = ctx.Err()
	}
	if a.err != nil {
		close(ready)
		c.Close()
		return nil, true, a.err
	}
	close(ready)
	return c, true, nil
}
