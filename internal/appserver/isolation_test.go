package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
)

// within fails when an answer takes longer than a person waits.
func (w *wire) within(method, params string) {
	w.t.Helper()
	from := time.Now()
	w.ok(method, params)
	if d := time.Since(from); d > time.Second {
		w.t.Errorf("%s took %s", method, d)
	}
}

func ofThread(id string, more ...string) string {
	return `{"threadId":"` + id + `"` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// gate stops calls about one thread until it is opened.
type gate struct {
	thread.Service
	mu      sync.Mutex
	shut    map[string]chan struct{} // by call and thread
	entered chan string
}

func newGate(s thread.Service) *gate {
	return &gate{Service: s, shut: map[string]chan struct{}{}, entered: make(chan string, 16)}
}

func (g *gate) close(call, id string) (open func()) {
	ch := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut[call+id] = ch
	return sync.OnceFunc(func() { close(ch) })
}

func (g *gate) pass(call string, id thole.ThreadID) {
	g.mu.Lock()
	ch := g.shut[call+string(id)]
	g.mu.Unlock()
	if ch != nil {
		g.entered <- call
		<-ch
	}
}

func (g *gate) StartTurn(ctx context.Context, a thole.Actor, p thread.StartTurn) (fold.Turn, error) {
	defer g.pass("start", p.Thread) // it has happened, and its answer is not given
	return g.Service.StartTurn(ctx, a, p)
}

func (g *gate) Turns(ctx context.Context, a thole.Actor, id thole.ThreadID, p thread.PageParams) (thread.Page[fold.Turn], error) {
	g.pass("turns", id)
	return g.Service.Turns(ctx, a, id, p)
}

// A request that takes long holds back what its own connection hears of its own
// thread, and nothing else.
func TestOneThreadDoesNotHoldUpAnother(t *testing.T) {
	var g *gate
	b := newBare(t, func(s thread.Service) thread.Service { g = newGate(s); return g })
	w, other := b.join(), b.join()
	slow, quick := w.thread(`{}`), w.thread(`{}`)
	other.ok("thread/resume", ofThread(slow))
	open := g.close("start", slow)
	defer open()
	from, heard := w.len(), other.len()
	w.send(`{"id":"slow","method":"turn/start","params":` + input(slow, "x") + `}`)
	<-g.entered
	other.note(heard, "turn/started") // of the slow one: another connection's answer is not waited for
	for range 3 {
		w.within("thread/name/set", ofThread(quick, `"name":"quick"`))
		w.within("turn/start", input(quick, "x"))
	}
	w.note(from, "turn/started") // of the quick one
	w.find(from, "news of the quick one", func(m msg) bool { return m.Method == "thread/name/updated" && m.field("threadId") == quick })
	for i, m := range w.since(from) {
		if m.field("threadId") == slow {
			t.Errorf("message %d, %s, came before the answer that causes it", i, m.Method)
		}
	}
	open()
	at, _ := w.find(from, "the slow answer", func(m msg) bool { return string(m.ID) == `"slow"` })
	i, _ := w.find(from, "its turn", func(m msg) bool { return m.Method == "turn/started" && m.field("threadId") == slow })
	if i < at {
		t.Error("the turn began before its answer")
	}
}

// A client that does not read may unsubscribe, resume again and ask: nobody else
// notices.
func TestStalledClientHoldsNoLane(t *testing.T) {
	b := newBare(t, nil)
	w := b.join()
	id := w.thread(`{}`)
	stalled := b.stream()
	defer stalled.Close("")
	for n, m := range []string{
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"stalled","version":"1"}}}`,
		`{"id":2,"method":"thread/resume","params":{"threadId":"` + id + `"}}`,
	} {
		if err := stalled.Write(t.Context(), []byte(m)); err != nil {
			t.Fatal(err)
		}
		for { // its answer
			data, err := stalled.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), fmt.Sprintf(`"id":%d,`, n+1)) {
				break
			}
		}
	}
	ref := b.turn(id, "x")
	b.report(ref, says("big", strings.Repeat("y", 100<<10))) // more than the backlog
	b.report(ref, says("more", "z"))                         // its pump waits for room
	for n, m := range []string{"thread/unsubscribe", "thread/resume", "thread/resume", "thread/unsubscribe"} {
		if err := stalled.Write(t.Context(), fmt.Appendf(nil, `{"id":%d,"method":"%s","params":{"threadId":"%s"}}`, 10+n, m, id)); err != nil {
			t.Fatal(err)
		}
		w.within("thread/name/set", ofThread(id, fmt.Sprintf(`"name":"name %d"`, n)))
	}
	w.within("turn/interrupt", ofThread(id, `"turnId":"`+string(ref.Turn)+`"`))
}

// The history of a resume is read while others go on with the thread; what they do
// follows the answer and is not in it. A thread/read does not hold them up either.
func TestHistoryIsReadOutsideTheLane(t *testing.T) {
	var g *gate
	b := newBare(t, func(s thread.Service) thread.Service { g = newGate(s); return g })
	w, joiner := b.join(), b.join()
	id := w.thread(`{}`)
	ref := b.turn(id, "x")
	b.report(ref, says("one", "said before"), begins("two"), grows("two", "some", 0))
	for _, c := range []struct{ method, more string }{
		{"thread/read", `"includeTurns":true`}, {"thread/resume", `"excludeTurns":false`},
	} {
		open := g.close("turns", id)
		from := joiner.len()
		joiner.send(`{"id":"` + c.method + `","method":"` + c.method + `","params":` + ofThread(id, c.more) + `}`)
		<-g.entered
		w.within("thread/name/set", ofThread(id, `"name":"after `+c.method+`"`))
		if c.method == "thread/resume" {
			b.report(ref, grows("two", " text", 4), says("two", "some text"), says("three", "said after"))
		}
		open()
		joiner.find(from, "answer", func(m msg) bool { return string(m.ID) == `"`+c.method+`"` })
	}
	at, answer := joiner.find(0, "answer", func(m msg) bool { return string(m.ID) == `"thread/resume"` })
	if text := string(answer.Result); !strings.Contains(text, "said before") || strings.Contains(text, "after thread/resume") || strings.Contains(text, "said after") || strings.Contains(text, "some") {
		t.Errorf("the snapshot is %s", text)
	}
	joiner.find(at, "three", func(m msg) bool { return m.Method == "item/completed" && m.field("item", "id") == "three" })
	var heard []string
	for _, m := range joiner.since(at + 1) {
		switch m.Method {
		case "item/agentMessage/delta":
			heard = append(heard, m.field("delta").(string))
		case "item/started", "item/completed":
			heard = append(heard, m.Method[5:]+" "+m.field("item", "id").(string))
		case "thread/name/updated":
			heard = append(heard, m.field("threadName").(string))
		}
	}
	want := "started two|some|after thread/resume| text|completed two|started three|completed three"
	if got := strings.Join(heard, "|"); got != want {
		t.Errorf("after the answer came %s, want %s", got, want)
	}
}

// A client is not given up for what happens while the server reads its history: the
// resume is refused and may be repeated.
func TestResumeOfATooBusyThread(t *testing.T) {
	var g *gate
	b := newBare(t, func(s thread.Service) thread.Service { g = newGate(s); return g })
	w, joiner := b.join(), b.join()
	id := w.thread(`{}`)
	ref := b.turn(id, "x")
	open := g.close("turns", id)
	joiner.send(`{"id":"r","method":"thread/resume","params":` + ofThread(id) + `}`)
	<-g.entered
	for i := range 20 {
		b.report(ref, says(fmt.Sprint(i), strings.Repeat("z", 60_000)))
	}
	open()
	if _, m := joiner.find(0, "the answer", func(m msg) bool { return string(m.ID) == `"r"` }); m.Error == nil || m.Error.Code != jsonrpc.CodeOverloaded {
		t.Fatalf("it was answered %s, %v", m.Result, m.Error)
	}
	joiner.ok("thread/resume", ofThread(id))
}

// counted counts reads.
type counted struct {
	thread.Service
	reads atomic.Int32
}

func (c *counted) Turns(ctx context.Context, a thole.Actor, id thole.ThreadID, p thread.PageParams) (thread.Page[fold.Turn], error) {
	c.reads.Add(1)
	return c.Service.Turns(ctx, a, id, p)
}

func (c *counted) Items(ctx context.Context, a thole.Actor, id thole.ThreadID, turn thole.TurnID, p thread.PageParams) (thread.Page[fold.ItemRecord], error) {
	c.reads.Add(1)
	return c.Service.Items(ctx, a, id, turn, p)
}

func (c *counted) TurnItems(ctx context.Context, a thole.Actor, id thole.ThreadID, turns []thole.TurnID, said bool) (map[thole.TurnID][]fold.ItemRecord, error) {
	c.reads.Add(1)
	return c.Service.TurnItems(ctx, a, id, turns, said)
}

// However many turns a thread has, its history is read with the same number of queries.
func TestHistoryInFewQueries(t *testing.T) {
	var n *counted
	b := newBare(t, func(s thread.Service) thread.Service { n = &counted{Service: s}; return n })
	w := b.join()
	id := w.thread(`{}`)
	for i := range 30 {
		b.report(b.turn(id, fmt.Sprintf("question %d", i)), says("note", "on it"), says("answer", fmt.Sprintf("answer %d", i)), ends())
	}
	for _, c := range []struct {
		method, more string
		items        int // of each turn
	}{
		{"thread/resume", `"excludeTurns":false`, 3}, {"thread/read", `"includeTurns":true`, 3}, {"thread/turns/list", `"limit":30,"itemsView":"summary"`, 2},
	} {
		n.reads.Store(0)
		_, m := w.call(c.method, ofThread(id, c.more))
		var out struct {
			Thread struct{ Turns []struct{ Items []any } }
			Data   []struct{ Items []any }
		}
		if err := json.Unmarshal(m.Result, &out); err != nil {
			t.Fatal(err)
		}
		turns := append(out.Thread.Turns, out.Data...)
		if len(turns) != 30 || n.reads.Load() > 2 {
			t.Errorf("%s has %d turns and read %d times", c.method, len(turns), n.reads.Load())
		}
		for i, turn := range turns {
			if len(turn.Items) != c.items {
				t.Errorf("%s: turn %d has %d items", c.method, i, len(turn.Items))
			}
		}
	}
}

// Fifty clients come and go on one thread, one of them does not read; what others do
// with the thread takes no longer for it.
func TestManyComeAndGo(t *testing.T) {
	b := newBare(t, nil)
	w := b.join()
	id := w.thread(`{}`)
	stalled := connect(t, b.stream())
	stalled.ok("initialize", `{"clientInfo":{"name":"stalled","version":"1"}}`)
	stalled.ok("thread/resume", ofThread(id))
	stalled.pause()
	defer stalled.resume()
	ref := b.turn(id, "x")
	var wg sync.WaitGroup
	const steps = 5
	for n := range 50 {
		wg.Go(func() {
			for i := range steps { // each time it comes back after another step
				c := b.join()
				c.ok("thread/resume", ofThread(id, fmt.Sprintf(`"excludeTurns":%v`, n%2 == 0)))
				c.find(0, "a name", func(m msg) bool { return m.Method == "" && number(nameIn(m)) > i || number(m.field("threadName")) > i })
				if n%3 != 0 {
					c.ok("thread/unsubscribe", ofThread(id))
				}
				c.close()
			}
		})
	}
	for i := range steps {
		item := fmt.Sprintf("i%d", i)
		b.report(ref, begins(item), grows(item, strings.Repeat("text ", 1000), 0), says(item, strings.Repeat("text ", 1000)))
		stalled.send(fmt.Sprintf(`{"id":"s%d","method":"%s","params":%s}`, i, []string{"thread/unsubscribe", "thread/resume"}[i%2], ofThread(id)))
		w.within("thread/name/set", ofThread(id, fmt.Sprintf(`"name":"name %d"`, i+1)))
		b.report(ref, asked(fmt.Sprintf("a%d", i)))
		w.within("thole/ask/answer", ofThread(id, fmt.Sprintf(`"askId":"a%d"`, i), `"answer":{"decision":"allow"}`))
	}
	w.within("turn/interrupt", ofThread(id, `"turnId":"`+string(ref.Turn)+`"`))
	wg.Wait()
}

// nameIn is the thread's name in an answer.
func nameIn(m msg) any {
	var r struct{ Thread struct{ Name string } }
	_ = json.Unmarshal(m.Result, &r)
	return r.Thread.Name
}
