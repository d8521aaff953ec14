package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/testkit/appschema"
	"github.com/tholehq/thole/internal/tholetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// msg is a message as it is on the wire.
type msg struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *jsonrpc.Error  `json:"error,omitempty"`
	Seq    uint64          `json:"seq,omitempty"`
}

// wire is a client that keeps every message in the order it came.
type wire struct {
	t   testing.TB
	rig *tholetest.Kit
	s   jsonrpc.Stream
	wg  sync.WaitGroup

	mu    sync.Mutex
	got   []msg
	more  chan struct{}
	ended bool
	next  int

	held sync.Mutex // not read while it is held
}

// pause makes the client stop reading, but for one message, until resume.
func (w *wire) pause()  { w.held.Lock() }
func (w *wire) resume() { w.held.Unlock() }

func connect(t testing.TB, s jsonrpc.Stream) *wire {
	w := &wire{t: t, s: appschema.Watch(t, s), more: make(chan struct{})}
	w.wg.Go(w.read)
	t.Cleanup(func() { w.close() })
	return w
}

// join connects and initializes with capabilities.
func join(t testing.TB, rig *tholetest.Kit, caps string) *wire {
	t.Helper()
	w := connect(t, rig.Stream())
	w.rig = rig
	w.ok("initialize", `{"clientInfo":{"name":"test","version":"1"},"capabilities":`+caps+`}`)
	return w
}

const full = `{"experimentalApi":true,"extensions":{"thole":{}}}`

func (w *wire) close() {
	_ = w.s.Close("done")
	w.wg.Wait()
}

func (w *wire) read() {
	for {
		data, err := w.s.Read(context.Background())
		w.held.Lock()
		w.held.Unlock() //nolint:staticcheck // it waits for resume
		w.mu.Lock()
		if err == nil {
			var m msg
			if json.Unmarshal(data, &m) == nil {
				w.got = append(w.got, m)
			}
		}
		w.ended = err != nil
		close(w.more)
		w.more = make(chan struct{})
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *wire) send(raw string) {
	w.t.Helper()
	if err := w.s.Write(context.Background(), []byte(raw)); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// find waits for the first message from index on that ok takes.
func (w *wire) find(from int, what string, ok func(msg) bool) (int, msg) {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		w.mu.Lock()
		got, more, ended := w.got, w.more, w.ended
		w.mu.Unlock()
		for i := from; i < len(got); i++ {
			if ok(got[i]) {
				return i, got[i]
			}
		}
		if ended {
			w.t.Fatalf("connection ended without %s", what)
		}
		select {
		case <-more:
		case <-deadline:
			w.t.Fatalf("no %s among %d messages: %v", what, len(got), w.methods(from))
		}
	}
}

// gone waits for the end of the connection.
func (w *wire) gone() {
	w.t.Helper()
	done := make(chan struct{})
	go func() { w.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		w.t.Fatal("the connection was not closed")
	}
}

// since is the messages that came, from an index on.
func (w *wire) since(from int) []msg {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]msg(nil), w.got[from:]...)
}

func (w *wire) methods(from int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, m := range w.got[min(from, len(w.got)):] {
		switch {
		case m.Method != "":
			out = append(out, m.Method)
		case m.Error != nil:
			out = append(out, "error:"+m.Error.Message)
		default:
			out = append(out, "result")
		}
	}
	return out
}

// call sends a request and waits for its answer, which it returns with its index.
func (w *wire) call(method, params string) (int, msg) {
	w.t.Helper()
	w.mu.Lock()
	w.next++
	id := fmt.Sprint(w.next)
	from := len(w.got)
	w.mu.Unlock()
	if params == "" {
		w.send(`{"id":` + id + `,"method":"` + method + `"}`)
	} else {
		w.send(`{"id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	}
	return w.find(from, "answer to "+method, func(m msg) bool { return m.Method == "" && string(m.ID) == id })
}

// ok is call for requests that must succeed; it returns the result's fields.
func (w *wire) ok(method, params string) map[string]any {
	w.t.Helper()
	_, m := w.call(method, params)
	if m.Error != nil {
		w.t.Fatalf("%s: %v", method, m.Error)
	}
	var out map[string]any
	if err := json.Unmarshal(m.Result, &out); err != nil {
		w.t.Fatalf("%s: %v in %s", method, err, m.Result)
	}
	return out
}

// refused is call for requests that must fail.
func (w *wire) refused(method, params string) *jsonrpc.Error {
	w.t.Helper()
	_, m := w.call(method, params)
	if m.Error == nil {
		w.t.Fatalf("%s %s was not refused: %s", method, params, m.Result)
	}
	return m.Error
}

// note waits for a notification or server request by name.
func (w *wire) note(from int, method string) (int, msg) {
	w.t.Helper()
	return w.find(from, method, func(m msg) bool { return m.Method == method })
}

func (w *wire) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got)
}

// thread starts a thread and returns its id.
func (w *wire) thread(params string) string {
	w.t.Helper()
	return w.ok("thread/start", params)["thread"].(map[string]any)["id"].(string)
}

// turn starts a turn and returns its id.
func (w *wire) turn(thread, text string) string {
	w.t.Helper()
	return w.ok("turn/start", input(thread, text))["turn"].(map[string]any)["id"].(string)
}

func input(thread, text string) string {
	raw, _ := json.Marshal(map[string]any{"threadId": thread, "input": []any{map[string]any{"type": "text", "text": text}}})
	return string(raw)
}

// field reads a dotted path of a message's params.
func (m msg) field(names ...string) any {
	var v any
	_ = json.Unmarshal(m.Params, &v)
	for _, n := range names {
		o, _ := v.(map[string]any)
		v = o[n]
	}
	return v
}

// connectAgain is another connection to the same server.
func connectAgain(w *wire) *wire { return join(w.t, w.rig, full) }
