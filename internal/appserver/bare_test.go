package appserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/internal/transport/ws"
)

// bare is a server over the thread machine alone: the test itself is the agent, so that
// it decides what happens when.
type bare struct {
	t       testing.TB
	threads *thread.Machine
	server  *appserver.Server
	serves  sync.WaitGroup
	events  int
	pays    map[string]string // what pays for the models of a provider
}

// newBare makes one; around may put something between the server and its threads.
func newBare(t testing.TB, around func(thread.Service) thread.Service) *bare {
	t.Helper()
	return newBareWith(t, around, nil)
}

// newBareWith is newBare with agents that only have names, and what runs next to them.
func newBareWith(t testing.TB, around func(thread.Service) thread.Service, agents func() []provider.Info, executors ...appserver.Executors) *bare {
	t.Helper()
	m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: storetest.SQLite(t).Threads()}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bare{t: t, threads: m}
	if err := m.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	var service thread.Service = m
	if around != nil {
		service = around(m)
	}
	account := func(_ context.Context, _ thole.Owner, name string) (string, error) { return b.pays[name], nil }
	cfg := appserver.Config{Threads: service, DefaultProvider: "test", Providers: agents, Account: account}
	if len(executors) > 0 {
		cfg.Executors = executors[0]
	}
	if b.server, err = appserver.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := b.server.Close(ctx); err != nil {
			t.Error(err)
		}
		_ = m.Close(ctx)
		b.serves.Wait()
	})
	return b
}

// join connects a client with all capabilities.
func (b *bare) join() *wire {
	b.t.Helper()
	w := connect(b.t, b.stream())
	w.ok("initialize", `{"clientInfo":{"name":"test","version":"1"},"capabilities":`+full+`}`)
	return w
}

func (b *bare) stream() jsonrpc.Stream {
	x, y := inproc.Pipe()
	b.serves.Go(func() { _ = b.server.Serve(context.Background(), y, thole.LocalActor) })
	return x
}

// listen serves on an address and returns the one that clients dial.
func (b *bare) listen(at string) string {
	b.t.Helper()
	addr, err := transport.ParseListen(at)
	if err != nil {
		b.t.Fatal(err)
	}
	auth, err := transport.NewAuth(transport.AuthOptions{Mode: map[bool]string{true: transport.ModeNone}[addr.Scheme == transport.WS]})
	if err != nil {
		b.t.Fatal(err)
	}
	l, err := transport.Listen(addr, auth)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel) // before the server is closed, which waits for it
	b.serves.Go(func() {
		_ = ws.NewServer(ws.Options{Auth: auth}, func(ctx context.Context, s jsonrpc.Stream) {
			_ = b.server.Serve(ctx, s, thole.LocalActor)
		}).Serve(ctx, l)
	})
	if addr.Scheme == transport.WS {
		return "ws://" + l.Addr().String()
	}
	return at
}

// turn starts a turn.
func (b *bare) turn(id, text string) thread.TurnRef {
	b.t.Helper()
	turn, err := b.threads.StartTurn(context.Background(), thole.LocalActor, thread.StartTurn{Thread: thole.ThreadID(id), Input: thole.Text(text)})
	if err != nil {
		b.t.Fatal(err)
	}
	return thread.TurnRef{Thread: turn.Thread, Turn: turn.ID}
}

// report is what the turn's agent does.
func (b *bare) report(ref thread.TurnRef, events ...event.Event) {
	b.t.Helper()
	for i := range events {
		b.events++
		events[i].ID, events[i].Turn, events[i].Time = thole.EventID(fmt.Sprintf("e%d", b.events)), ref.Turn, time.Now()
	}
	if err := b.threads.Apply(context.Background(), ref, events); err != nil {
		b.t.Fatal(err)
	}
}

func begins(id string) event.Event {
	return event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: thole.ItemID(id), Kind: event.ItemMessage}}}
}

func grows(id, text string, at int) event.Event {
	return event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: thole.ItemID(id), Stream: event.StreamText, Delta: text, Offset: int64(at)}}
}

func says(id, text string) event.Event {
	return event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: thole.ItemID(id), Kind: event.ItemMessage, Text: text}}}
}

func asked(id string) event.Event {
	return event.Event{Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{
		ID: thole.AskID(id), Kind: event.AskCommand, Command: "true", Decisions: []event.Decision{event.DecisionAllow, event.DecisionDeny},
	}}}
}

func ends() event.Event {
	return event.Event{Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}
}

// items are the items of a thread as the thread has them.
func (b *bare) items(id string) []fold.ItemRecord {
	b.t.Helper()
	page, err := b.threads.Items(context.Background(), thole.LocalActor, thole.ThreadID(id), "", thread.PageParams{Limit: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	return page.Items
}
