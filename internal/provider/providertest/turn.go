package providertest

import (
	"context"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// Turn is a turn under way.
type Turn struct {
	b       *Bench
	session provider.Session
	ID      thole.TurnID
	cancel  context.CancelFunc
	done    chan error

	mu     sync.Mutex // guards what follows
	events []event.Event
	more   chan struct{} // closed and replaced when an event arrives
}

// Start runs a prompt in the background.
func (b *Bench) Start(s provider.Session, prompt string) *Turn {
	b.Helper()
	return b.StartTurn(s, provider.Turn{Input: thole.Text(prompt)})
}

// StartTurn is Start with the whole turn.
func (b *Bench) StartTurn(s provider.Session, turn provider.Turn) *Turn {
	b.Helper()
	if turn.ID == "" {
		turn.ID = thole.NewID[thole.TurnID](time.Now())
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Turn{b: b, session: s, ID: turn.ID, cancel: cancel, done: make(chan error, 1), more: make(chan struct{})}
	go func() {
		t.done <- s.Run(ctx, turn, func(e event.Event) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.events = append(t.events, e)
			close(t.more)
			t.more = make(chan struct{})
		})
	}()
	b.Cleanup(cancel)
	return t
}

// Play runs a prompt to its end and checks the stream.
func (b *Bench) Play(s provider.Session, prompt string) Record {
	b.Helper()
	return b.Start(s, prompt).Wait()
}

// Until returns the first event that match accepts, old ones included.
func (t *Turn) Until(what string, match func(event.Event) bool) event.Event {
	t.b.Helper()
	limit := time.NewTimer(rowLimit)
	defer limit.Stop()
	seen := 0
	for {
		t.mu.Lock()
		for ; seen < len(t.events); seen++ {
			if match(t.events[seen]) {
				e := t.events[seen]
				t.mu.Unlock()
				return e
			}
		}
		more := t.more
		t.mu.Unlock()
		select {
		case <-more:
		case err := <-t.done:
			t.done <- err
			t.mu.Lock()
			missed := seen == len(t.events)
			t.mu.Unlock()
			if missed {
				t.b.Fatalf("the turn ended (%v) before %s; events:\n%s", err, what, t.Record())
			}
		case <-limit.C:
			t.b.Fatalf("no %s within %v; events:\n%s", what, rowLimit, t.Record())
		}
	}
}

// UntilAsk waits for the next ask of a kind that is not among those seen.
func (t *Turn) UntilAsk(kind event.AskKind, seen ...thole.AskID) event.Ask {
	t.b.Helper()
	e := t.Until(string(kind)+" ask", func(e event.Event) bool {
		if e.Kind != event.AskRequested || e.Ask.Kind != kind {
			return false
		}
		for _, id := range seen {
			if e.Ask.ID == id {
				return false
			}
		}
		return true
	})
	return *e.Ask
}

// UntilText waits until the streamed messages contain text.
func (t *Turn) UntilText(text string) {
	t.b.Helper()
	var all strings.Builder
	t.Until("text "+text, func(e event.Event) bool {
		if e.Kind == event.ItemDelta && e.Stream == event.StreamText {
			all.WriteString(e.Delta)
		}
		return strings.Contains(all.String(), text)
	})
}

// Answer settles an ask.
func (t *Turn) Answer(ask event.Ask, answer event.Answer) {
	t.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), rowLimit)
	defer cancel()
	if err := t.session.Answer(ctx, ask.ID, answer); err != nil {
		t.b.Fatalf("answer: %v", err)
	}
}

// Stop interrupts the turn.
func (t *Turn) Stop() {
	t.b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), rowLimit)
	defer cancel()
	if err := t.session.Stop(ctx); err != nil {
		t.b.Fatalf("stop: %v", err)
	}
}

// Wait waits for the end, checks the stream and returns it.
func (t *Turn) Wait() Record {
	t.b.Helper()
	select {
	case err := <-t.done:
		t.done <- err
		if err != nil {
			t.b.Fatalf("run: %v (hint: %s)", err, thole.HintOf(err))
		}
	case <-time.After(rowLimit):
		t.b.Fatalf("the turn did not end within %v; events:\n%s", rowLimit, t.Record())
	}
	r := t.Record()
	if err := Check(t.ID, r); err != nil {
		t.b.Fatalf("%v; events:\n%s", err, r)
	}
	return r
}

// Record returns the events so far.
func (t *Turn) Record() Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(Record(nil), t.events...)
}
