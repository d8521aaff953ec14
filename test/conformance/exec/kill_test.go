//go:build linux

package exec_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/relay/registry"
	frames "github.com/tholehq/thole/protocol/relay"
)

// mortal is a relay that can die: its sockets are reset and it knows nothing afterwards.
type mortal struct {
	door
	tokens *registry.Tokens

	life sync.RWMutex // guards reg
	reg  *registry.Registry
}

func newMortal(t testing.TB) *mortal {
	t.Helper()
	tokens, err := registry.ParseTokens(relayToken)
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{tokens: tokens, reg: registry.New(registry.Config{Tokens: tokens})}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.life.RLock()
		reg := m.reg
		m.life.RUnlock()
		reg.ServeHTTP(w, r)
	}))
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.conns = append(m.conns, c)
		return ctx
	}
	srv.Start()
	m.URL = srv.URL
	t.Cleanup(func() { m.reg.Close(); srv.Close() })
	return m
}

// die ends everything at once; the next life begins at the same address.
func (m *mortal) die() {
	m.life.Lock()
	old := m.reg
	m.reg = registry.New(registry.Config{Tokens: m.tokens})
	m.life.Unlock()
	m.cut()
	old.Close()
}

func startCat(t testing.TB, c *execclient.Client, name string) *execclient.Process {
	t.Helper()
	start := shell(name, "exec cat")
	start.PipeStdin = true
	p, err := c.Start(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// echoes writes numbered lines to a cat and takes each back before the next, and reports
// what was lost, doubled or mixed up.
func echoes(ctx context.Context, p *execclient.Process, name string, lines int, echoed func()) error {
	got := ""
	for i := range lines {
		line := fmt.Sprintf("%s-%d\n", name, i)
		if err := p.Write(ctx, []byte(line)); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		for len(got) < len(line) {
			ev, err := p.Next(ctx)
			if err != nil {
				return fmt.Errorf("line %d: %w", i, err)
			}
			if ev.Kind != execclient.Output {
				return fmt.Errorf("line %d: %v, %w", i, ev.Kind, errors.Join(ev.Err, errors.New("instead of output")))
			}
			got += string(ev.Data)
		}
		if got != line {
			return fmt.Errorf("line %d came back as %q", i, got)
		}
		got = ""
		echoed()
	}
	return nil
}

// TestRelayKilledAtRandom: fifty clients of each of two environments write and read while the
// relay dies again and again. Nothing is lost, doubled or sent to the other environment. When
// the executor itself is another one afterwards, every process ends with what happened.
func TestRelayKilledAtRandom(t *testing.T) {
	const clients = 100
	environments := []string{"box", "desk"}
	lines, deaths := 12, 3
	if os.Getenv("THOLE_SOAK") != "" {
		lines, deaths = 1000, 40
	}
	m := newMortal(t)
	servers := map[string]*atomic.Pointer[tapped]{}
	serveAnew := func(environment string) {
		p := &tapped{methods: map[string]int{}, started: make(chan string, clients), srv: execserver.New(execserver.Config{})}
		servers[environment].Store(p)
		t.Cleanup(p.srv.Close)
	}
	for _, environment := range environments {
		srv := &atomic.Pointer[tapped]{}
		servers[environment] = srv
		serveAnew(environment)
		runExecutor(t, &relay.Executor{Registry: registryClient(t, &m.door, environment), Identity: identity(t), Serve: func(ctx context.Context, s jsonrpc.Stream) {
			p := srv.Load()
			_ = p.srv.Serve(ctx, tapStream{s, p})
		}})
	}
	name := func(i int) (environment, process string) {
		environment = environments[i%len(environments)]
		return environment, fmt.Sprint(environment, "-", i)
	}

	var total atomic.Int64
	at := make(chan struct{}, clients*lines)
	var wg sync.WaitGroup
	all, cats := make([]*execclient.Client, clients), make([]*execclient.Process, clients)
	for i := range clients { // a start whose answer is lost fails to its caller, so they come first
		environment, process := name(i)
		all[i] = connectBy(t, through(t, &m.door, environment), execclient.Options{CallFor: 20 * time.Second}).Client
		cats[i] = startCat(t, all[i], process)
	}
	for i, p := range cats {
		wg.Go(func() {
			_, process := name(i)
			if err := echoes(t.Context(), p, process, lines, func() { total.Add(1); at <- struct{}{} }); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	killed := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(killed)
		for range deaths {
			for range 1 + random.IntN(clients*lines/deaths-1) {
				select {
				case <-at:
				case <-done:
					return
				}
			}
			m.die()
		}
	}()
	wg.Wait()
	close(done)
	<-killed
	resumed := 0
	for _, c := range all {
		resumed += c.Resumed()
	}
	if n := total.Load(); n != int64(clients*lines) || resumed == 0 {
		t.Fatalf("%d of %d lines, %d connections resumed", n, clients*lines, resumed)
	}
	t.Logf("%d lines, %d connections resumed", total.Load(), resumed)
	for environment, srv := range servers {
		started := srv.Load().started
		if len(started) != clients/len(environments) {
			t.Errorf("%s started %d processes", environment, len(started))
		}
		for range len(started) {
			if process := <-started; !strings.HasPrefix(process, environment+"-") {
				t.Errorf("%s started %s", environment, process)
			}
		}
	}

	// Another server has none of the sessions: a clear end.
	p, err := all[0].Start(t.Context(), shell("last", "exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	serveAnew("box")
	m.cut()
	for {
		ev, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == execclient.Failed {
			if !errors.Is(ev.Err, execclient.ErrLost) {
				t.Fatalf("it ended with %v", ev.Err)
			}
			break
		}
	}
}

// TestRelayThatMeddles: a rendezvous that swaps and repeats frames is not noticed; one that
// changes them costs connections, and nothing else.
func TestRelayThatMeddles(t *testing.T) {
	m := newMortal(t)
	srv := execserver.New(execserver.Config{})
	t.Cleanup(srv.Close)
	runExecutor(t, &relay.Executor{Registry: registryClient(t, &m.door, "box"), Identity: identity(t), Serve: func(ctx context.Context, s jsonrpc.Stream) { _ = srv.Serve(ctx, s) }})
	for name, corrupt := range map[string]bool{"swapped and repeated": false, "changed": true} {
		t.Run(name, func(t *testing.T) {
			var changed atomic.Int64
			var armed atomic.Bool // a start whose answer is lost fails to its caller
			evil := httptest.NewServer(meddler(m.URL, func(n int, f []byte) [][]byte {
				switch p, err := frames.Parse(f); {
				case err != nil || p.Kind != frames.KindData || !armed.Load():
					return [][]byte{f}
				case corrupt && n%40 == 39:
					changed.Add(1)
					f[len(f)-1] ^= 1
					return [][]byte{f}
				case !corrupt && n%3 == 0:
					changed.Add(1)
					return [][]byte{f, f}
				}
				return [][]byte{f}
			}, !corrupt))
			t.Cleanup(evil.Close)
			c := connectBy(t, through(t, &door{URL: evil.URL}, "box"), execclient.Options{CallFor: 20 * time.Second, RetryEvery: 10 * time.Millisecond})
			id := strings.ReplaceAll(name, " ", "-")
			cat := startCat(t, c.Client, id+"-cat")
			counter := shell(id, "read x; i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo $i; done")
			counter.PipeStdin = true
			p, err := c.Start(t.Context(), counter)
			if err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			if err := p.Write(t.Context(), []byte("go\n")); err != nil {
				t.Fatal(err)
			}
			var got, want strings.Builder
			for ev, err := p.Next(t.Context()); ; ev, err = p.Next(t.Context()) {
				if err != nil || ev.Kind == execclient.Failed || ev.Kind == execclient.Lost {
					t.Fatalf("%+v, %v", ev, err)
				}
				if ev.Kind == execclient.Output {
					got.Write(ev.Data)
				}
				if ev.Kind == execclient.Closed {
					break
				}
			}
			for i := range 500 {
				fmt.Fprintln(&want, i+1)
			}
			if got.String() != want.String() {
				t.Fatalf("%d bytes, want %d", got.Len(), want.Len())
			}
			if err := echoes(t.Context(), cat, id, 100, func() {}); err != nil {
				t.Fatal(err)
			}
			if changed.Load() == 0 || (c.Resumed() > 0) != corrupt {
				t.Fatalf("%d frames changed, %d connections resumed", changed.Load(), c.Resumed())
			}
		})
	}
}

// meddler is a relay's front for harnesses: each frame of the executor passes by fn with its
// number, and with swap every second pair of frames of data changes places.
func meddler(behind string, fn func(n int, frame []byte) [][]byte, swap bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != registry.RendezvousPath {
			forward(w, r, behind)
			return
		}
		near, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return
		}
		defer func() { _ = near.CloseNow() }()
		far, _, err := websocket.Dial(r.Context(), "ws"+strings.TrimPrefix(behind, "http")+r.URL.RequestURI(), nil) //nolint:bodyclose // the library closes it
		if err != nil {
			return
		}
		defer func() { _ = far.CloseNow() }()
		near.SetReadLimit(frames.MaxFrame)
		far.SetReadLimit(frames.MaxFrame)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			defer cancel()
			for {
				typ, raw, err := near.Read(ctx)
				if err != nil || far.Write(ctx, typ, raw) != nil {
					return
				}
			}
		}()
		in := make(chan []byte)
		go func() {
			defer close(in)
			for {
				_, raw, err := far.Read(ctx)
				if err != nil {
					return
				}
				select {
				case in <- raw:
				case <-ctx.Done():
					return
				}
			}
		}()
		var kept []byte // overtaken by the next one, if there is one soon
		for n := 0; ; n++ {
			var raw []byte
			var ok bool
			if kept == nil {
				raw, ok = <-in
			} else {
				select {
				case raw, ok = <-in:
				case <-time.After(5 * time.Millisecond):
					raw, ok, kept = kept, true, nil
					n++
				}
			}
			if !ok {
				return
			}
			if swap && kept == nil && n%4 == 2 {
				if f, err := frames.Parse(raw); err == nil && f.Kind == frames.KindData {
					kept = raw
					continue
				}
			}
			out := fn(n, raw)
			if kept != nil {
				out = append(out, kept)
				kept = nil
			}
			for _, frame := range out {
				if near.Write(ctx, websocket.MessageBinary, frame) != nil {
					return
				}
			}
		}
	})
}

// forward passes a call of the registry on, under the name that the caller used.
func forward(w http.ResponseWriter, r *http.Request, behind string) {
	u, _ := url.Parse(behind)
	(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(u)
		p.Out.Host = p.In.Host
	}}).ServeHTTP(w, r)
}
