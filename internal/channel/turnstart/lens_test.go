package turnstart_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
)

// lens stands between the channel and the server and shows what the server says
// as a test wants it: whole messages, where proxy sees bytes.
type lens struct {
	t    testing.TB
	to   string
	sock string
	wg   sync.WaitGroup
	// asked counts the requests of the channel, but for the first of a connection.
	asked atomic.Int64

	mu sync.Mutex // guards what follows
	// edit changes the result of a call, or the params of a notification, in place.
	// false: the channel does not get it.
	edit func(method string, body map[string]any) bool
}

func newLens(t testing.TB, to string, edit func(method string, body map[string]any) bool) *lens {
	dir, err := os.MkdirTemp("", "ln")
	if err != nil {
		t.Fatal(err)
	}
	l := &lens{t: t, to: to, sock: filepath.Join(dir, "s"), edit: edit}
	ln, err := net.Listen("unix", l.sock)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bg)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.wg.Add(1)
		defer l.wg.Done()
		l.serve(ctx, w, r)
	})}
	l.wg.Go(func() { _ = srv.Serve(ln) })
	t.Cleanup(func() {
		cancel()
		_ = srv.Close()
		l.wg.Wait()
		os.RemoveAll(dir)
	})
	return l
}

func (l *lens) addr() string { return "unix://" + l.sock }

func (l *lens) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	down, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer down.CloseNow()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", l.to)
	}}
	up, _, err := websocket.Dial(ctx, "ws://localhost/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}}) //nolint:bodyclose // the library closes it
	if err != nil {
		return
	}
	defer up.CloseNow()
	down.SetReadLimit(-1)
	up.SetReadLimit(-1)
	var mu sync.Mutex
	calls := map[string]string{} // methods of requests by their ids
	pass := func(from, to *websocket.Conn, see func([]byte) []byte) {
		defer cancel()
		for {
			typ, msg, err := from.Read(ctx)
			if err != nil {
				return
			}
			if msg = see(msg); msg == nil {
				continue
			}
			if to.Write(ctx, typ, msg) != nil {
				return
			}
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		pass(down, up, func(msg []byte) []byte {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(msg, &m) == nil && len(m.ID) > 0 {
				mu.Lock()
				calls[string(m.ID)] = m.Method
				if m.Method != "initialize" {
					l.asked.Add(1)
				}
				mu.Unlock()
			}
			return msg
		})
	})
	wg.Go(func() {
		pass(up, down, func(msg []byte) []byte {
			var m map[string]any
			if json.Unmarshal(msg, &m) != nil {
				return msg
			}
			method, _ := m["method"].(string)
			body, _ := m["params"].(map[string]any)
			if result, ok := m["result"].(map[string]any); ok && method == "" {
				id, _ := json.Marshal(m["id"])
				mu.Lock()
				method = calls[string(id)]
				mu.Unlock()
				body = result
			}
			if body == nil {
				return msg
			}
			l.mu.Lock()
			keep := l.edit(method, body)
			l.mu.Unlock()
			if !keep {
				return nil
			}
			out, err := json.Marshal(m)
			if err != nil {
				return msg
			}
			return out
		})
	})
	wg.Wait()
}

// turns are those of an answer of thread/turns/list.
func turnsIn(body map[string]any) (out []map[string]any) {
	data, _ := body["data"].([]any)
	for _, d := range data {
		if t, ok := d.(map[string]any); ok {
			out = append(out, t)
		}
	}
	return out
}
