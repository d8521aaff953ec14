package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var me = thole.LocalActor

type nobody struct{}

func (nobody) Wake(thole.ThreadID, thole.TurnID)                                       {}
func (nobody) Steer(context.Context, thread.TurnRef, []thole.Input, string) error      { return nil }
func (nobody) Answer(context.Context, thread.TurnRef, thole.AskID, event.Answer) error { return nil }
func (nobody) Interrupt(context.Context, thread.TurnRef) error                         { return nil }
func (nobody) Recover(context.Context, fold.Thread, fold.Turn) thread.Fate             { return thread.FateLeave }

// bench has real threads, and a log that can be read.
type bench struct {
	*thread.Machine
	t  *testing.T
	n  int
	mu sync.Mutex // guards now
	at time.Time
	journal
}

type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func newBench(t *testing.T, db *store.DB) *bench {
	b := &bench{t: t, at: time.UnixMilli(1_700_000_000_000).UTC()}
	m, err := thread.New(thread.Config{Store: threadtest.Unfenced{Store: db.Threads()}, Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	m.Attach(nobody{})
	b.Machine = m
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return b
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

// notify runs a notifier until the test ends or stops it.
func (b *bench) notify(cfg Config) (stop func()) {
	b.t.Helper()
	cfg.Threads, cfg.Actor, cfg.Log = b.Machine, me, slog.New(slog.NewTextHandler(&b.journal, nil))
	if cfg.On == nil {
		cfg.On = []string{Done, Failed, Ask}
	}
	n := New(cfg)
	if err := n.Start(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = n.Stop(context.Background()) })
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) create(p thread.Create) thole.ThreadID {
	b.t.Helper()
	th, err := b.Create(context.Background(), me, p)
	if err != nil {
		b.t.Fatal(err)
	}
	return th.ID
}

// turn runs a turn that lasts so long, and reports about it.
func (b *bench) turn(id thole.ThreadID, lasts time.Duration, events ...event.Event) {
	b.t.Helper()
	turn, err := b.StartTurn(context.Background(), me, thread.StartTurn{Thread: id, Input: thole.Text("hello")})
	if err != nil {
		b.t.Fatal(err)
	}
	b.pass(lasts)
	for i := range events {
		b.n++
		events[i].ID = thole.EventID(fmt.Sprint("e", b.n))
	}
	if err := b.Apply(context.Background(), thread.TurnRef{Thread: id, Turn: turn.ID}, events); err != nil {
		b.t.Fatal(err)
	}
}

func ends(o thole.Outcome) event.Event {
	e := event.Event{Kind: event.TurnEnded, Data: event.Data{Outcome: o}}
	if o == thole.OutcomeFailed {
		e.Error = &thole.TurnError{Code: thole.ErrNetwork, Message: "the words of a failure"}
	}
	return e
}

func said(text string) event.Event {
	return event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: thole.ItemID(fmt.Sprintf("%x", text)), Kind: event.ItemMessage, Text: text}}}
}

func asks(k event.AskKind) event.Event {
	return event.Event{Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: thole.AskID("ask-" + k), Kind: k, Command: "rm -rf the-secret", Questions: []event.Question{{ID: "q"}}}}}
}

// taker is a target that keeps what it gets.
func taker() (Target, chan Notice) {
	got := make(chan Notice, 100)
	return Target{Name: "test", Send: func(_ context.Context, n Notice) error { got <- n; return nil }}, got
}

func all(got chan Notice) (list []Notice) {
	for {
		select {
		case n := <-got:
			list = append(list, n)
		default:
			return list
		}
	}
}

func next[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
	}
	return v
}

func TestEndsAndAsksAreTold(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	to, got := taker()
	stop := b.notify(Config{Targets: []Target{to}, Page: "https://agents.example.org"})
	id := b.create(thread.Create{Name: "mend it", Settings: event.Settings{Provider: "codex"}})
	b.turn(id, 90*time.Second, said("words of an agent"), asks(event.AskTool), asks(event.AskCommand), ends(thole.OutcomeCompleted))
	b.turn(id, time.Second, ends(thole.OutcomeFailed))
	b.turn(id, time.Second, ends(thole.OutcomeInterrupted))
	child := b.create(thread.Create{Name: "child", Parent: id})
	b.turn(child, time.Second, ends(thole.OutcomeCompleted))
	stop()
	byEvent := map[string]Notice{}
	list := all(got)
	for _, n := range list {
		byEvent[n.Event] = n
		if n.Thread != string(id) || n.Title != "mend it" || n.URL != "https://agents.example.org/c/"+string(id) || n.Agent != "codex" || n.ID == "" || n.Detail != "" {
			t.Errorf("told %+v", n)
		}
		if text := string(n.body()); strings.Contains(text, "words") || strings.Contains(text, "secret") {
			t.Errorf("details without being asked for: %s", text)
		}
	}
	if len(list) != 3 || byEvent[Done].Seconds != 90 || byEvent[Failed].Error != "network" || byEvent[Ask].Ask == nil || byEvent[Ask].Ask.Kind != "command" {
		t.Errorf("told %+v", list)
	}
}

func TestWhatIsToldIsChosen(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	to, got := taker()
	stop := b.notify(Config{Targets: []Target{to}, On: []string{Done, Failed}, Details: true, Least: time.Minute})
	id := b.create(thread.Create{Name: "x"})
	b.turn(id, time.Second, said("short"), ends(thole.OutcomeCompleted))
	b.turn(id, time.Second, asks(event.AskInput), ends(thole.OutcomeFailed))
	b.turn(id, time.Hour, said("first"), said("long\n\x1b[31m words"), ends(thole.OutcomeCompleted))
	stop()
	details := map[string]string{}
	list := all(got)
	for _, n := range list {
		details[n.Event] = n.Detail
	}
	if len(list) != 2 || details[Failed] != "the words of a failure" || details[Done] != "long [31m words" {
		t.Errorf("told %+v", list)
	}
}

// A new owner sends what happens from then on: old ends, and asks that still wait, were
// sent by the one before.
func TestARestartTellsNothingAgain(t *testing.T) {
	db := storetest.SQLite(t)
	b := newBench(t, db)
	id := b.create(thread.Create{Name: "x"})
	b.turn(id, time.Second, ends(thole.OutcomeCompleted))
	waits := b.create(thread.Create{Name: "waits"})
	b.turn(waits, time.Second, asks(event.AskInput))
	if err := b.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	b2 := newBench(t, db)
	b2.n = b.n
	to, got := taker()
	stop := b2.notify(Config{Targets: []Target{to}})
	if err := b2.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	b2.turn(id, time.Second, ends(thole.OutcomeFailed))
	stop()
	if list := all(got); len(list) != 1 || list[0].Event != Failed || list[0].Thread != string(id) {
		t.Errorf("told %+v", list)
	}
}

// A target that hangs delays no turn, no other target and not the end; what waits too long
// in its queue is dropped, the oldest first.
func TestWhatHangsDelaysNothing(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	dir := t.TempDir()
	hang := script(t, dir, "echo $$ >> "+dir+"/pids; sleep 1000 & wait")
	to, got := taker()
	stop := b.notify(Config{Targets: []Target{Command([]string{hang}, os.Getenv), to}})
	id := b.create(thread.Create{Name: "x"})
	const many = queued + atOnce + 3
	for range many {
		b.turn(id, time.Second, ends(thole.OutcomeCompleted))
	}
	for range many {
		next(t, got)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the end took %s", took)
	}
	if dropped := strings.Count(b.String(), "the oldest is dropped"); dropped < 3 || dropped > 3+atOnce {
		t.Errorf("%d were dropped:\n%s", dropped, b.String())
	}
	pids, err := os.ReadFile(filepath.Join(dir, "pids"))
	if n := strings.Count(string(pids), "\n"); err != nil || n > atOnce {
		t.Errorf("%d ran at once: %v", n, err)
	}
}

func script(t *testing.T, dir, body string) string {
	t.Helper()
	path := filepath.Join(dir, "told")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func notice(t *testing.T, body []byte) (n Notice) {
	t.Helper()
	if err := json.Unmarshal(body, &n); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return n
}
