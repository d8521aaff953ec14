//go:build linux

package execserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/protocol/exec"
)

// flooder is a client that sends what it likes and reads only when it is asked to.
type flooder struct {
	t   *testing.T
	s   jsonrpc.Stream
	ses *session
	n   int

	mu    sync.Mutex
	codes map[int]int // answers by their code, 0 without an error
}

func newFlooder(t *testing.T, m Memory) *flooder {
	t.Helper()
	srv := New(Config{Memory: m, ConcurrentRequests: 8})
	near, far := inproc.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ctx, far) }()
	t.Cleanup(func() { cancel(); srv.Close(); <-done })
	f := &flooder{t: t, s: near, codes: map[int]int{}}
	f.send(exec.MethodInitialize, map[string]any{"clientName": "flooder"})
	if _, err := near.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := near.Write(t.Context(), []byte(`{"method":"initialized"}`)); err != nil {
		t.Fatal(err)
	}
	for _, ses := range srv.sessions {
		f.ses = ses
	}
	return f
}

func (f *flooder) send(method string, params map[string]any) {
	f.t.Helper()
	f.n++
	raw, err := json.Marshal(map[string]any{"id": f.n, "method": method, "params": params})
	if err == nil {
		err = f.s.Write(f.t.Context(), raw)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// read reads on and counts what the answers are.
func (f *flooder) read() {
	go func() {
		for {
			raw, err := f.s.Read(f.t.Context())
			if err != nil {
				return
			}
			var m struct {
				ID    json.RawMessage
				Error *jsonrpc.Error
			}
			_ = json.Unmarshal(raw, &m)
			f.mu.Lock()
			switch {
			case m.ID == nil:
			case m.Error != nil:
				f.codes[int(m.Error.Code)]++
			default:
				f.codes[0]++
			}
			f.mu.Unlock()
		}
	}()
}

func (f *flooder) count(code int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.codes[code]
}

func (f *flooder) start(id, script string, stdin bool) {
	f.send(exec.MethodProcessStart, map[string]any{
		"processId": id, "argv": []string{"/bin/sh", "-c", script}, "cwd": "file:///", "env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false, "pipeStdin": stdin, "arg0": nil,
	})
}

func (b *budget) peek() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

const overloaded = -32001

// TestMemoryOfWrites: processes that read nothing are written to until there is no more room, and
// what they had is given back when they end.
func TestMemoryOfWrites(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		limit := int64(1 << 20)
		if !guarded {
			limit = 1 << 40
		}
		f := newFlooder(t, Memory{Input: limit})
		f.read()
		chunk := base64.StdEncoding.EncodeToString(make([]byte, 100<<10))
		const many = 40
		for i := range many {
			id := fmt.Sprint("p", i%4)
			if i < 4 {
				f.start(id, "exec sleep 1000", true)
			}
			f.send(exec.MethodProcessWrite, map[string]any{"processId": id, "writeId": fmt.Sprint(i), "chunk": chunk})
		}
		poll.Until(t, "the answers", func() bool { return f.count(0)+f.count(overloaded) == many+4 })
		used, refused := f.ses.held.input.peek(), f.count(overloaded)
		if guarded && (used > limit || refused < many/2) {
			t.Errorf("%d bytes of %d are held, %d refused", used, limit, refused)
		}
		if !guarded && (used < 2<<20 || refused > 0) {
			t.Errorf("without the bound %d bytes are held, %d refused", used, refused)
		}
		for i := range 4 {
			f.send(exec.MethodProcessTerminate, map[string]any{"processId": fmt.Sprint("p", i)})
		}
		poll.Until(t, "the room", func() bool { return f.ses.held.input.peek() < 1000 }) // the ids are known for a while
	}
}

// TestMemoryOfOutput: what processes wrote and nobody read is kept as far as there is room.
func TestMemoryOfOutput(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		limit := int64(3 << 20)
		if !guarded {
			limit = 1 << 40
		}
		f := newFlooder(t, Memory{Kept: limit})
		f.read()
		const many = 12
		for i := range many {
			f.start(fmt.Sprint("p", i), "head -c 2000000 /dev/zero", false)
		}
		f.start("last", "echo last", false)
		var used int64
		poll.Until(t, "the end of all", func() bool {
			used = max(used, f.ses.held.kept.peek())
			f.ses.mu.Lock()
			defer f.ses.mu.Unlock()
			closed := 0
			for _, p := range f.ses.processes {
				p.mu.Lock()
				if p.closed {
					closed++
				}
				p.mu.Unlock()
			}
			return closed == many+1
		})
		slack := int64(2 << 20) // rings that grow at the same moment
		if guarded && used > limit+slack || !guarded && used < many<<20 {
			t.Errorf("guarded %t: %d bytes were kept, the limit is %d", guarded, used, limit)
		}
		for _, p := range f.ses.processes {
			f.ses.drop(p)
		}
		if left := f.ses.held.kept.peek(); left != 0 {
			t.Errorf("%d bytes are counted of processes that are gone", left)
		}
	}
}

// TestMemoryOfAnswers: a client that asks for files and reads none of them.
func TestMemoryOfAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, guarded := range []bool{true, false} {
		limit := int64(14 << 20) // two
		if !guarded {
			limit = 1 << 40
		}
		f := newFlooder(t, Memory{Answers: limit})
		const many = 8
		for range many {
			f.send(exec.MethodReadFile, map[string]any{"path": "file://" + file})
		}
		held := int64(copies * 2 << 20)
		want := 2 * held
		if !guarded {
			want = 6 * held // one is queued, whatever it takes, and so may be the next
		}
		poll.Until(t, "the reads", func() bool { return f.ses.held.answers.peek() >= want-held })
		if used := f.ses.held.answers.peek(); guarded && used > limit {
			t.Errorf("%d bytes of %d are held", used, limit)
		}
		f.read()
		poll.Until(t, "the answers", func() bool { return f.count(0) == many })
		poll.Until(t, "the room", func() bool { return f.ses.held.answers.peek() == 0 })
	}
}

// TestMemoryOfBodies: answers of web servers that come together are refused beyond the bound.
func TestMemoryOfBodies(t *testing.T) {
	gate := make(chan struct{})
	arrived := make(chan struct{}, 100)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20))
		_ = http.NewResponseController(w).Flush()
		arrived <- struct{}{}
		<-gate
	}))
	defer site.Close()
	for _, guarded := range []bool{true, false} {
		limit := int64(10 << 20)
		if !guarded {
			limit = 1 << 40
		}
		f := newFlooder(t, Memory{Bodies: limit})
		f.read()
		const many = 8
		for i := range many {
			f.send(exec.MethodHTTPRequest, map[string]any{"method": "GET", "url": site.URL, "requestId": fmt.Sprint(i), "headers": []any{}})
		}
		for range many {
			<-arrived
		}
		poll.Until(t, "the bodies", func() bool { return f.count(overloaded) > 0 || f.ses.held.bodies.peek() >= many*copies<<20 })
		if used := f.ses.held.bodies.peek(); guarded && used > limit {
			t.Errorf("%d bytes of %d are held", used, limit)
		}
		for range many {
			select {
			case gate <- struct{}{}:
			case <-t.Context().Done():
			}
		}
		poll.Until(t, "the answers", func() bool { return f.count(0)+f.count(overloaded) == many })
		if refused := f.count(overloaded); (refused > 0) != guarded {
			t.Errorf("guarded %t: %d refused", guarded, refused)
		}
		poll.Until(t, "the room", func() bool { return f.ses.held.bodies.peek() == 0 })
	}
}
