package registry_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/relay/registry"
	"github.com/tholehq/thole/internal/testkit/poll"
	wire "github.com/tholehq/thole/protocol/relay"
)

func dial(t *testing.T, url string) jsonrpc.Stream {
	t.Helper()
	s, err := (&relay.Dialer{Registry: client(t, url, harnessToken), Identity: identity(t), Timers: quick}).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close("") })
	return s
}

// TestSecondExecutor: the one that is there stays, with its streams, and the other learns
// what to do. Without the question to the first one the second replaces it.
func TestSecondExecutor(t *testing.T) {
	url := serve(t, registry.Limits{})
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	s := dial(t, url)
	for range 3 {
		err := (&relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t), Timers: quick}).Run(t.Context())
		if thole.CodeOf(err) != thole.CodeBusy || !strings.Contains(err.Error(), `"box" is served by another executor`) || !strings.Contains(thole.HintOf(err), "--environment-id") {
			t.Fatalf("the second executor: %v", err)
		}
		echo(t, s, []byte("the first one goes on"))
	}

	unasked := serve(t, registry.Limits{Probe: time.Nanosecond})
	ready := run(t, &relay.Executor{Registry: client(t, unasked, executorToken), Identity: identity(t)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- (&relay.Executor{Registry: client(t, unasked, executorToken), Identity: identity(t), Timers: quick, Serve: func(context.Context, jsonrpc.Stream) {}}).Run(ctx)
	}()
	<-ready // pushed out, and back
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestLostSocketWithABusyStream: a stream whose server is in a call that nothing ends delays
// no other one's way back. They have 30 s to resume.
func TestLostSocketWithABusyStream(t *testing.T) {
	url := serve(t, registry.Limits{})
	busy, free := make(chan struct{}), make(chan struct{})
	e := &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)}
	e.Serve = func(ctx context.Context, s jsonrpc.Stream) {
		for {
			msg, err := s.Read(ctx)
			switch {
			case err != nil:
				return
			case string(msg) == "copy":
				close(busy)
				<-free
			case s.Write(ctx, msg) != nil:
				return
			}
		}
	}
	ready := run(t, e)
	t.Cleanup(func() { close(free) }) // before the executor is waited for
	if err := dial(t, url).Write(t.Context(), []byte("copy")); err != nil {
		t.Fatal(err)
	}
	<-busy
	for range 8 { // failures, which close the socket
		r := newRaw(t, url)
		r.send(wire.Handshake(r.id, []byte("nonsense")))
		r.next()
	}
	select {
	case <-ready:
	case <-time.After(5 * time.Second):
		t.Fatal("the executor did not come back while a call went on")
	}
	echo(t, dial(t, url), []byte("others go on"))
}

// TestSilentExecutor: one whose socket is open and that answers nothing holds nothing.
func TestSilentExecutor(t *testing.T) {
	url := serve(t, registry.Limits{Probe: 20 * time.Millisecond})
	var reg wire.Registration
	if status := post(t, url, executorToken, "register", wire.RegisterRequest{SecurityProfile: wire.Profile, ExecutorPublicKey: key(t)}, &reg); status != 200 {
		t.Fatal(status)
	}
	c, _, err := websocket.Dial(t.Context(), reg.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }() // never read: no pong
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	echo(t, dial(t, url), []byte("another one"))
}

// TestExecutorWaitsForItsEnvironment: one that lost its place to another comes back when
// that one has gone.
func TestExecutorWaitsForItsEnvironment(t *testing.T) {
	tokens, err := registry.ParseTokens(executorToken)
	if err != nil {
		t.Fatal(err)
	}
	reg := registry.New(registry.Config{Tokens: tokens})
	var broken atomic.Bool // the way of the first one
	sockets := make(chan net.Conn, 100)
	first := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		reg.ServeHTTP(w, req)
	}))
	first.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { sockets <- c; return ctx }
	first.Start()
	second := httptest.NewServer(reg)
	t.Cleanup(func() { reg.Close(); first.Close(); second.Close() })
	taken := make(chan struct{}, 100)
	ready := run(t, &relay.Executor{Registry: client(t, first.URL, executorToken), Identity: identity(t), Log: slog.New(warnings{slog.DiscardHandler, func(line slog.Record) {
		line.Attrs(func(a slog.Attr) bool {
			if strings.Contains(a.Value.String(), "another executor") {
				taken <- struct{}{}
			}
			return true
		})
	}})})
	broken.Store(true)
	for range 2 { // its registration and its socket
		_ = (<-sockets).Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	there, done := make(chan struct{}, 10), make(chan error, 1)
	go func() {
		done <- (&relay.Executor{Registry: client(t, second.URL, executorToken), Identity: identity(t), Timers: quick, OnReady: func(wire.Registration) { there <- struct{}{} }}).Run(ctx)
	}()
	<-there
	broken.Store(false)
	<-taken
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-ready
	if len(taken) > 0 {
		t.Error("it was logged more than once")
	}
}

// warnings calls a function with each.
type warnings struct {
	slog.Handler
	fn func(slog.Record)
}

func (w warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	w.fn(r)
	return nil
}

// TestSocketsWithoutAStream: a ticket buys a socket for as long as a handshake takes. With
// more time than the test has, all places stay taken.
func TestSocketsWithoutAStream(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		lim := registry.Limits{Streams: 2, Opening: time.Hour}
		if guarded {
			lim.Opening = 50 * time.Millisecond
		}
		url := serve(t, lim)
		run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
		for range 2 { // sockets that say nothing, and streams without a handshake
			newRaw(t, url)
			r := newRaw(t, url)
			_ = r.c.Write(t.Context(), websocket.MessageBinary, wire.Resume(r.id).Append(nil)) // too late for the guard, on a slow machine
		}
		open := func() bool {
			s, err := (&relay.Dialer{Registry: client(t, url, harnessToken), Identity: identity(t), Timers: quick}).Dial(t.Context())
			if err != nil {
				return false
			}
			defer func() { _ = s.Close("") }()
			echo(t, s, []byte("a place"))
			return true
		}
		if guarded {
			poll.Until(t, "a place", open)
		} else if open() {
			t.Error("the places were free: the guard is not what frees them")
		}
	}
}

// TestBundlesAreBounded: a holder of both roles uses authorizations up and keeps tickets.
func TestBundlesAreBounded(t *testing.T) {
	tokens, err := registry.ParseTokens(otherToken)
	if err != nil {
		t.Fatal(err)
	}
	reg := registry.New(registry.Config{Tokens: tokens})
	srv := httptest.NewServer(reg)
	t.Cleanup(func() { reg.Close(); srv.Close() })
	run(t, &relay.Executor{Registry: client(t, srv.URL, otherToken), Identity: identity(t)})
	mine := key(t)
	granted := 0
	for range 300 {
		var b wire.Bundle
		status := post(t, srv.URL, otherToken, "connect", wire.ConnectRequest{HarnessPublicKey: mine}, &b)
		if status == http.StatusConflict {
			continue // not there yet
		}
		if status == http.StatusTooManyRequests {
			break
		}
		granted++
		post(t, srv.URL, otherToken, "validate", wire.ValidateRequest{ExecutorRegistrationID: b.ExecutorRegistrationID, HarnessPublicKey: mine, HarnessKeyAuthorization: b.HarnessKeyAuthorization}, nil)
	}
	if granted != 256 {
		t.Fatalf("%d tickets of one registration", granted)
	}
}

// TestAuthorizationsEndWithTheirSocket: harnesses that come and go use nothing up.
func TestAuthorizationsEndWithTheirSocket(t *testing.T) {
	url := serve(t, registry.Limits{})
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	me := key(t)
	for range 300 {
		var b wire.Bundle
		connect(t, url, me, &b) // fails when there are 256
		c, _, err := websocket.Dial(t.Context(), b.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.CloseNow()
	}
}

// TestFloodOfHalfMessages: streams that announce much and never finish cost the executor a
// bounded amount of memory, and the others nothing.
func TestFloodOfHalfMessages(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		e := &relay.Executor{Identity: identity(t), Memory: 1 << 40}
		if guarded {
			e.Memory = 1 << 20
		}
		url := serve(t, registry.Limits{})
		e.Registry = client(t, url, executorToken)
		e.Serve = func(ctx context.Context, s jsonrpc.Stream) { // answers the first and lets the rest lie
			if msg, err := s.Read(ctx); err == nil {
				_ = s.Write(ctx, msg)
			}
			<-ctx.Done()
		}
		run(t, e)
		modest := dial(t, url)
		greedy := []jsonrpc.Stream{}
		for range 4 {
			s := dial(t, url)
			echo(t, s, []byte("hello"))
			if err := s.Write(t.Context(), make([]byte, 400<<10)); err != nil {
				t.Fatal(err)
			}
			greedy = append(greedy, s)
		}
		ended := make(chan bool, len(greedy))
		for _, s := range greedy {
			go func() {
				_, err := s.Read(t.Context())
				ended <- err != nil
			}()
		}
		if guarded {
			<-ended // at least one of them
		}
		echo(t, modest, []byte("others go on"))
		if !guarded && len(ended) > 0 {
			t.Error("a stream was reset without the bound")
		}
	}
}

// TestLyingRelay: a relay that vouches for its own key reads everything, unless one side
// has pinned the other's.
func TestLyingRelay(t *testing.T) {
	for _, pinned := range []string{"", "executor", "harness"} {
		honest, evil := serve(t, registry.Limits{}), serve(t, registry.Limits{})
		own, mine := identity(t), identity(t)
		e := &relay.Executor{Registry: client(t, honest, executorToken), Identity: own}
		if pinned == "harness" {
			e.Harnesses = []string{mine.Public().Fingerprint()}
		}
		run(t, e)
		overheard := make(chan string, 10)
		run(t, &relay.Executor{Registry: client(t, evil, executorToken), Identity: identity(t), Serve: func(ctx context.Context, near jsonrpc.Stream) {
			far, err := (&relay.Dialer{Registry: client(t, honest, harnessToken), Identity: identity(t), Timers: quick}).Dial(ctx)
			if err != nil {
				return
			}
			relay.Pipe(ctx, listener{near, overheard}, far)
		}})
		d := &relay.Dialer{Registry: client(t, evil, harnessToken), Identity: mine, Timers: quick}
		if pinned == "executor" {
			d.Executor = own.Public().Fingerprint()
		}
		s, err := d.Dial(t.Context())
		if err == nil {
			_ = s.Write(t.Context(), []byte("a secret"))
			_, err = s.Read(t.Context())
			_ = s.Close("")
		}
		heard := ""
		select {
		case heard = <-overheard:
		default:
		}
		switch pinned {
		case "": // the attack
			if err != nil || heard != "a secret" {
				t.Fatalf("a lying relay heard %q, %v: the pins are not what stops it", heard, err)
			}
		case "executor":
			if thole.CodeOf(err) != thole.CodeForbidden || heard != "" {
				t.Fatalf("heard %q, %v", heard, err)
			}
		case "harness": // what it says reaches nobody: nothing runs
			if err == nil {
				t.Fatal("the executor let the relay in")
			}
		}
	}
}

// listener passes on what it reads and keeps it.
type listener struct {
	jsonrpc.Stream
	heard chan string
}

func (l listener) Read(ctx context.Context) ([]byte, error) {
	msg, err := l.Stream.Read(ctx)
	if err == nil {
		l.heard <- string(msg)
	}
	return msg, err
}

// TestRegistryThatLies: answers that would send a ticket, or ourselves, elsewhere.
func TestRegistryThatLies(t *testing.T) {
	for name, lie := range map[string]wire.Registration{
		"unencrypted":         {EnvironmentID: "box", URL: "ws://192.0.2.1/rendezvous?ticket=x", SecurityProfile: wire.Profile, ExecutorRegistrationID: "r"},
		"no socket":           {EnvironmentID: "box", URL: "http://127.0.0.1/", SecurityProfile: wire.Profile, ExecutorRegistrationID: "r"},
		"another environment": {EnvironmentID: "other", URL: "ws://127.0.0.1/", SecurityProfile: wire.Profile, ExecutorRegistrationID: "r"},
		"another profile":     {EnvironmentID: "box", URL: "ws://127.0.0.1/", SecurityProfile: "none", ExecutorRegistrationID: "r"},
		"no registration":     {EnvironmentID: "box", URL: "ws://127.0.0.1/", SecurityProfile: wire.Profile},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, lie) }))
		err := (&relay.Executor{Registry: client(t, srv.URL, executorToken), Identity: identity(t), Timers: quick}).Run(t.Context())
		if code := thole.CodeOf(err); code != thole.CodeForbidden && code != thole.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
		srv.Close()
	}
	redirect := httptest.NewServer(http.RedirectHandler("https://192.0.2.1/", http.StatusTemporaryRedirect))
	defer redirect.Close()
	if err := (&relay.Executor{Registry: client(t, redirect.URL, executorToken), Identity: identity(t)}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("a redirect: %v", err)
	}
}

// TestTicketsStayOutOfErrors: errors are logged, and a ticket is a place at the rendezvous.
func TestTicketsStayOutOfErrors(t *testing.T) {
	hang := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/connect") {
			k := identity(t).Public()
			writeJSON(w, wire.Bundle{
				Registration:            wire.Registration{EnvironmentID: "box", URL: "ws" + strings.TrimPrefix("http://"+req.Host, "http") + "/?ticket=" + uuid.Nil.String(), SecurityProfile: wire.Profile, ExecutorRegistrationID: "r"},
				ExecutorPublicKey:       wire.Key{Suite: wire.Suite, X25519: k.X25519(), MLKEM768: k.MLKEM768()},
				HarnessKeyAuthorization: "a",
			})
			return
		}
		select { // the rendezvous never answers
		case <-hang:
		case <-req.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(hang)
	_, err := (&relay.Dialer{Registry: client(t, srv.URL, harnessToken), Identity: identity(t), Timers: relay.Timers{Handshake: 50 * time.Millisecond}}).Dial(t.Context())
	if err == nil || strings.Contains(err.Error(), uuid.Nil.String()) {
		t.Fatalf("the error is %v", err)
	}
}

func writeJSON(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
