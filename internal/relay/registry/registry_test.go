package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/internal/relay/registry"
	wire "github.com/tholehq/thole/protocol/relay"
)

const (
	executorToken = "token-of-an-executor"
	harnessToken  = "token-of-one-harness"
	otherToken    = "token-of-someone-else"
)

var quick = relay.Timers{RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond, ConnectRetry: time.Millisecond}

func serve(t *testing.T, lim registry.Limits) string {
	t.Helper()
	tokens, err := registry.ParseTokens("# comment\n\nann executor " + executorToken + "\nann harness " + harnessToken + "\nbob both " + otherToken)
	if err != nil {
		t.Fatal(err)
	}
	r := registry.New(registry.Config{Tokens: tokens, Limits: lim})
	srv := httptest.NewServer(r)
	t.Cleanup(func() { r.Close(); srv.Close() })
	return srv.URL
}

func client(t *testing.T, url, token string) *relay.Registry {
	t.Helper()
	r, err := relay.NewRegistry(url, "box", func() (string, error) { return token, nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func identity(t *testing.T) *noise.Identity {
	t.Helper()
	id, err := noise.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func key(t *testing.T) wire.Key {
	k := identity(t).Public()
	return wire.Key{Suite: wire.Suite, X25519: k.X25519(), MLKEM768: k.MLKEM768()}
}

// run runs an executor that echoes, and returns when it can be reached.
func run(t *testing.T, e *relay.Executor) (ready chan wire.Registration) {
	t.Helper()
	ready = make(chan wire.Registration, 1000)
	e.OnReady = func(r wire.Registration) { ready <- r }
	e.Timers = quick
	if e.Log == nil {
		e.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if e.Serve == nil {
		e.Serve = func(ctx context.Context, s jsonrpc.Stream) {
			for {
				msg, err := s.Read(ctx)
				if err != nil || s.Write(ctx, msg) != nil {
					return
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return ready
}

func echo(t *testing.T, s jsonrpc.Stream, msg []byte) {
	t.Helper()
	if err := s.Write(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(t.Context()); err != nil || !bytes.Equal(got, msg) {
		t.Fatalf("%d of %d bytes came back, %v", len(got), len(msg), err)
	}
}

func TestStreamsCarryMessages(t *testing.T) {
	url := serve(t, registry.Limits{})
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	d := &relay.Dialer{Registry: client(t, url, harnessToken), Identity: identity(t), Timers: quick}
	for _, size := range []int{1, 61436, 61437, 61440, 61441, 5 << 20} {
		s, err := d.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		echo(t, s, bytes.Repeat([]byte{'x'}, size))
		echo(t, s, []byte("again"))
		_ = s.Close("")
	}
}

// TestPins: keys that a registry vouches for and a person does not.
func TestPins(t *testing.T) {
	url := serve(t, registry.Limits{})
	own, mine := identity(t), identity(t)
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: own, Harnesses: []string{mine.Public().Fingerprint()}})
	dial := func(id *noise.Identity, executor string) error {
		s, err := (&relay.Dialer{Registry: client(t, url, harnessToken), Identity: id, Executor: executor, Timers: quick}).Dial(t.Context())
		if err == nil {
			_ = s.Close("")
		}
		return err
	}
	if err := dial(mine, own.Public().Fingerprint()); err != nil {
		t.Fatal(err)
	}
	if err := dial(mine, identity(t).Public().Fingerprint()); thole.CodeOf(err) != thole.CodeForbidden {
		t.Errorf("an executor with another key was used: %v", err)
	}
	if err := dial(identity(t), ""); err == nil {
		t.Error("a harness with another key was let in")
	}
	if err := dial(mine, ""); err != nil {
		t.Error(err)
	}
}

func TestTokens(t *testing.T) {
	url := serve(t, registry.Limits{})
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	for token, want := range map[string]thole.Code{
		"wrong": thole.CodeUnauthorized, executorToken: thole.CodeForbidden, otherToken: thole.CodeUnavailable, // which has no such environment
	} {
		_, err := (&relay.Dialer{Registry: client(t, url, token), Identity: identity(t), Timers: quick}).Dial(t.Context())
		if thole.CodeOf(err) != want {
			t.Errorf("%s: %v", token, err)
		}
	}
	err := (&relay.Executor{Registry: client(t, url, harnessToken), Identity: identity(t)}).Run(t.Context())
	if thole.CodeOf(err) != thole.CodeForbidden {
		t.Errorf("a harness registered: %v", err)
	}
	for _, bad := range []string{"", "short", "ann admin " + executorToken, "ann " + executorToken, executorToken + "\n" + executorToken} {
		if _, err := registry.ParseTokens(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(executorToken), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.ReadTokens(file); err == nil {
		t.Error("a file that everybody reads was taken")
	}
	for _, base := range []string{"http://192.0.2.1", "ftp://127.0.0.1", "https://u:p@127.0.0.1", ""} {
		if _, err := relay.NewRegistry(base, "box", nil); err == nil {
			t.Errorf("%q was taken", base)
		}
	}
	for _, id := range []string{"", "..", "a/b", strings.Repeat("x", 65)} {
		if _, err := relay.NewRegistry(url, id, nil); err == nil {
			t.Errorf("environment %q was taken", id)
		}
	}
}

// post calls the registry as a program that is not ours.
func post(t *testing.T, url, token, method string, in, out any) int {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/cloud/environment/box/"+method, bytes.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusOK && out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatal(err)
		}
	}
	return resp.StatusCode
}

// connect asks for a bundle until the executor's socket, whose other end it knows to be
// open, is at the rendezvous.
func connect(t *testing.T, url string, key wire.Key, b *wire.Bundle) {
	t.Helper()
	for {
		switch status := post(t, url, harnessToken, "connect", wire.ConnectRequest{HarnessPublicKey: key}, b); status {
		case http.StatusOK:
			return
		case http.StatusConflict:
		default:
			t.Fatal(status)
		}
	}
}

// TestAuthorizationsAreForOne: one key, one registration, once.
func TestAuthorizationsAreForOne(t *testing.T) {
	url := serve(t, registry.Limits{})
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	mine := key(t)
	var b wire.Bundle
	connect := func() { connect(t, url, mine, &b) }
	valid := func(in wire.ValidateRequest) bool {
		t.Helper()
		var out wire.ValidateResult
		if status := post(t, url, executorToken, "validate", in, &out); status != 200 {
			t.Fatal(status)
		}
		return out.Valid
	}
	connect()
	right := wire.ValidateRequest{ExecutorRegistrationID: b.ExecutorRegistrationID, HarnessPublicKey: mine, HarnessKeyAuthorization: b.HarnessKeyAuthorization}
	if !valid(right) {
		t.Fatal("refused")
	}
	if valid(right) {
		t.Error("used twice")
	}
	connect()
	if valid(wire.ValidateRequest{ExecutorRegistrationID: b.ExecutorRegistrationID, HarnessPublicKey: key(t), HarnessKeyAuthorization: b.HarnessKeyAuthorization}) {
		t.Error("valid for another key")
	}
	connect()
	if valid(wire.ValidateRequest{ExecutorRegistrationID: "other", HarnessPublicKey: mine, HarnessKeyAuthorization: b.HarnessKeyAuthorization}) {
		t.Error("valid for another registration")
	}
	// A ticket is for one socket.
	connect()
	c, _, err := websocket.Dial(t.Context(), b.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	if _, resp, err := websocket.Dial(t.Context(), b.URL, nil); err == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Error("a ticket was used twice")
	}
	bad := mine
	bad.Suite = "other"
	if status := post(t, url, harnessToken, "connect", wire.ConnectRequest{HarnessPublicKey: bad}, nil); status != 400 {
		t.Errorf("another suite: %d", status)
	}
	if status := post(t, url, harnessToken, "connect", map[string]any{"harness_public_key": mine, "more": 1}, nil); status != 400 {
		t.Errorf("unknown member: %d", status)
	}
	if status := post(t, url, otherToken, "connect", wire.ConnectRequest{HarnessPublicKey: mine}, nil); status != http.StatusConflict {
		t.Errorf("offline: %d", status)
	}
	if status := post(t, url, harnessToken, "connect", map[string]any{"harness_public_key": strings.Repeat("x", 70000)}, nil); status != 400 {
		t.Errorf("large body: %d", status)
	}
}

// raw is a harness that breaks rules: it has a bundle and a socket.
type raw struct {
	t  *testing.T
	c  *websocket.Conn
	id string
	b  wire.Bundle
	me *noise.Identity
}

func newRaw(t *testing.T, url string) *raw {
	t.Helper()
	r := &raw{t: t, id: uuid.NewString(), me: identity(t)}
	k := r.me.Public()
	connect(t, url, wire.Key{Suite: wire.Suite, X25519: k.X25519(), MLKEM768: k.MLKEM768()}, &r.b)
	c, _, err := websocket.Dial(t.Context(), r.b.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	t.Cleanup(func() { _ = c.CloseNow() })
	return r
}

func (r *raw) send(f *wire.Frame) {
	r.t.Helper()
	if err := r.c.Write(r.t.Context(), websocket.MessageBinary, f.Append(nil)); err != nil {
		r.t.Fatal(err)
	}
}

// next is the kind of the next frame, KindNone when the socket has ended.
func (r *raw) next() (wire.Kind, *wire.Frame) {
	_, data, err := r.c.Read(r.t.Context())
	if err != nil {
		return wire.KindNone, nil
	}
	f, err := wire.Parse(data)
	if err != nil {
		r.t.Fatal(err)
	}
	return f.Kind, f
}

func (r *raw) first(payload string) *wire.Frame {
	r.t.Helper()
	exec, err := relay.ParseKey(r.b.ExecutorPublicKey)
	if err != nil {
		r.t.Fatal(err)
	}
	_, msg, err := noise.NewInitiator(r.me, exec, noise.Prologue{Environment: "box", Registration: r.b.ExecutorRegistrationID, Stream: r.id}, []byte(payload))
	if err != nil {
		r.t.Fatal(err)
	}
	return wire.Handshake(r.id, msg)
}

// TestExecutorRefuses is the list of what a hostile or broken harness may send.
func TestExecutorRefuses(t *testing.T) {
	for name, attack := range map[string]func(r *raw){
		"garbage": func(r *raw) { r.send(wire.Handshake(r.id, make([]byte, 4000))) },
		"data before handshake": func(r *raw) {
			r.send(&wire.Frame{Version: 1, StreamID: r.id, Kind: wire.KindData, SegmentCount: 1, Payload: make([]byte, 40)})
		},
		"no authorization":    func(r *raw) { r.send(r.first("")) },
		"wrong authorization": func(r *raw) { r.send(r.first("something else")) },
		"long authorization":  func(r *raw) { r.send(r.first(strings.Repeat("x", 5000))) },
		"not UTF-8":           func(r *raw) { r.send(r.first("\xff")) },
		"corrupt record": func(r *raw) {
			r.send(r.first(r.b.HarnessKeyAuthorization))
			if kind, _ := r.next(); kind != wire.KindHandshake {
				r.t.Errorf("answered by %d", kind)
			}
			r.send(&wire.Frame{Version: 1, StreamID: r.id, Kind: wire.KindData, SegmentCount: 1, Payload: make([]byte, 40)})
		},
		"record far ahead": func(r *raw) {
			r.send(r.first(r.b.HarnessKeyAuthorization))
			r.next()
			r.send(&wire.Frame{Version: 1, StreamID: r.id, Kind: wire.KindData, Seq: 65, SegmentCount: 1, Payload: make([]byte, 40)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, registry.Limits{})
			run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
			r := newRaw(t, url)
			attack(r)
			if kind, f := r.next(); kind != wire.KindReset || f.Reason != wire.ReasonProtocol {
				t.Fatalf("answered by %d %+v", kind, f)
			}
			s, err := (&relay.Dialer{Registry: client(t, url, harnessToken), Identity: identity(t), Timers: quick}).Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			echo(t, s, []byte("others go on"))
			_ = s.Close("")
		})
	}
}

// TestReplayedHandshake: what went over the wire once opens no second stream.
func TestReplayedHandshake(t *testing.T) {
	url := serve(t, registry.Limits{})
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	r := newRaw(t, url)
	hello := r.first(r.b.HarnessKeyAuthorization)
	r.send(hello)
	if kind, _ := r.next(); kind != wire.KindHandshake {
		t.Fatal(kind)
	}
	r.send(hello) // the stream is active
	if kind, _ := r.next(); kind != wire.KindReset {
		t.Fatal(kind)
	}
	_ = r.c.CloseNow()
	for {
		again := newRaw(t, url)
		again.id = r.id // the prologue binds the stream, so the thief takes that too
		again.send(hello)
		kind, f := again.next()
		if kind == wire.KindNone {
			continue // its user is not quite gone
		}
		if kind != wire.KindReset {
			t.Fatalf("a replayed handshake was answered by %d %+v", kind, f)
		}
		break
	}
}

// TestRendezvousRefuses: frames that belong to no stream of the socket.
func TestRendezvousRefuses(t *testing.T) {
	url := serve(t, registry.Limits{Streams: 1, Handshake: 1, Burst: 4 << 10}) // one handshake, however slow the test
	run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	victim := newRaw(t, url)
	victim.send(victim.first(victim.b.HarnessKeyAuthorization))
	if kind, _ := victim.next(); kind != wire.KindHandshake {
		t.Fatal(kind)
	}
	for name, f := range map[string]*wire.Frame{
		"a stream in use": wire.Resume(victim.id), "too many streams": wire.Resume(uuid.NewString()), "no UUID": wire.Resume("stream"),
		"no version": {StreamID: victim.id, Kind: wire.KindResume},
	} {
		r := newRaw(t, url)
		r.send(f)
		if kind, _ := r.next(); kind != wire.KindNone {
			t.Errorf("%s: answered by %d", name, kind)
		}
	}
	victim.send(victim.first("again")) // a handshake beyond the budget
	if kind, f := victim.next(); kind != wire.KindReset || f.Reason != "too_many_handshakes" {
		t.Fatal(kind, f)
	}
	if kind, _ := victim.next(); kind != wire.KindNone {
		t.Fatal(kind)
	}
}

// TestFailuresCloseTheSocket: the eighth failed handshake costs the executor's socket,
// after which it connects again.
func TestFailuresCloseTheSocket(t *testing.T) {
	url := serve(t, registry.Limits{})
	ready := run(t, &relay.Executor{Registry: client(t, url, executorToken), Identity: identity(t)})
	for range 8 {
		r := newRaw(t, url)
		r.send(wire.Handshake(r.id, make([]byte, 4000)))
	}
	<-ready
	s, err := (&relay.Dialer{Registry: client(t, url, harnessToken), Identity: identity(t), Timers: quick}).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	echo(t, s, []byte("back"))
	_ = s.Close("")
}

// TestRelayRestarts: an executor whose registration was forgotten registers again.
func TestRelayRestarts(t *testing.T) {
	tokens, err := registry.ParseTokens(otherToken)
	if err != nil {
		t.Fatal(err)
	}
	one, two := registry.New(registry.Config{Tokens: tokens}), registry.New(registry.Config{Tokens: tokens})
	current := make(chan *registry.Registry, 1)
	current <- one
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := <-current
		current <- r
		r.ServeHTTP(w, req)
	}))
	t.Cleanup(func() { two.Close(); srv.Close() })
	ready := run(t, &relay.Executor{Registry: client(t, srv.URL, otherToken), Identity: identity(t)})
	<-current
	current <- two
	one.Close()
	<-ready
	s, err := (&relay.Dialer{Registry: client(t, srv.URL, otherToken), Identity: identity(t), Timers: quick}).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	echo(t, s, []byte("again"))
	_ = s.Close("")
}
