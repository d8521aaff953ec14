package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/testkit/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	goodToken = "tgw_good"
	idleToken = "tgw_idle" // of a thread without an open turn
	goodProof = "proof-of-the-executor"
	realKey   = "sk-real-key"
)

var paths = map[Dialect]string{Anthropic: "/r/v1/messages", Responses: "/r/v1/responses", Chat: "/r/v1/chat/completions"}

var bodies = map[Dialect]string{
	Anthropic: `{"model":"m-1","max_tokens":100,"stream":true,"messages":[]}`,
	Responses: `{"model":"m-1","stream":true,"input":[],"store":false}`,
	Chat:      `{"model":"m-1","max_tokens":100,"stream":true,"messages":[]}`,
}

var dialects = []Dialect{Anthropic, Responses, Chat}

// rig is a gateway on a socket with fakes at its ports.
type rig struct {
	*Gateway
	socket string
	route  Route
	ledger *fakeLedger
	denied []string
}

type fakeTokens struct{}

func (fakeTokens) Claim(_ context.Context, token, proof [32]byte) (Claim, error) {
	switch {
	case proof != sha256.Sum256([]byte(goodProof)):
	case token == sha256.Sum256([]byte(goodToken)):
		return Claim{Executor: "e", Thread: "t", Turn: "u", Provider: "p"}, nil
	case token == sha256.Sum256([]byte(idleToken)):
		return Claim{}, thole.Errorf(thole.CodeGone, "no open turn")
	}
	return Claim{}, thole.Errorf(thole.CodeUnauthorized, "unknown")
}

// fakeLedger keeps its calls.
type fakeLedger struct {
	mu     sync.Mutex
	refuse error
	begun  []Call
	ended  []Result
	ends   map[string]int
	open   int
	zero   chan struct{} // closed when nothing is open
}

func (l *fakeLedger) Begin(_ context.Context, c Call) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return "", l.refuse
	}
	l.begun = append(l.begun, c)
	if l.open++; l.open == 1 {
		l.zero = make(chan struct{})
	}
	return fmt.Sprint(len(l.begun)), nil
}

func (l *fakeLedger) End(ctx context.Context, id string, r Result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[string]int{}
	}
	l.ends[id]++
	l.ended = append(l.ended, r)
	if l.open--; l.open == 0 {
		close(l.zero)
	}
	return ctx.Err()
}

// results waits for all calls to be settled and checks that each was once.
func (l *fakeLedger) results(t *testing.T) []Result {
	t.Helper()
	l.mu.Lock()
	zero := l.zero
	l.mu.Unlock()
	if zero != nil {
		<-zero
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ends) != len(l.begun) {
		t.Errorf("%d calls begun, %d ended", len(l.begun), len(l.ends))
	}
	for id, n := range l.ends {
		if n != 1 {
			t.Errorf("call %s was ended %d times", id, n)
		}
	}
	return l.ended
}

func (r *rig) Route(_ context.Context, _ Claim, name string) (Route, error) {
	if name != "r" {
		return Route{}, thole.Errorf(thole.CodeNotFound, "no route %q", name)
	}
	return r.route, nil
}

// newRig serves a gateway before upstreams, signed with a key that says whether it was
// renewed.
func newRig(t *testing.T, d Dialect, servers ...*upstream.Server) *rig {
	t.Helper()
	r := &rig{ledger: &fakeLedger{}, route: Route{Dialect: d}}
	for i, s := range servers {
		r.route.Upstreams = append(r.route.Upstreams, at(t, fmt.Sprintf("up%d", i), s.URL()))
	}
	r.Gateway = New(Config{
		Tokens: fakeTokens{}, Routes: r, Ledger: r.ledger,
		Refused: func(_ context.Context, _ Claim, u Upstream) { r.denied = append(r.denied, u.Name) },
	})
	r.socket = serve(t, r.Gateway)
	t.Cleanup(r.Close)
	return r
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "g.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := NewServer(h)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ListenProof(l)) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return socket
}

func at(t *testing.T, name, base string) Upstream {
	t.Helper()
	address, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return Upstream{Name: name, Base: address, Sign: func(_ context.Context, h http.Header, refused bool) error {
		key := realKey
		if refused {
			key += "-renewed"
		}
		h.Set("Authorization", "Bearer "+key)
		return nil
	}}
}

// dial opens a connection that has proven itself.
func (r *rig) dial(ctx context.Context) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	if err == nil {
		_, err = io.WriteString(c, ProofLine(goodProof))
	}
	return c, err
}

func (r *rig) client(t *testing.T) *http.Client {
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return r.dial(ctx) },
		DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer is what a client sees.
type answer struct {
	status int
	header http.Header
	body   string
	err    string // of the head or the body
}

func ask(client *http.Client, method, address, body string, header ...string) answer {
	q, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	q.Header.Set("Authorization", "Bearer "+goodToken)
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(q)
	if err != nil {
		return answer{err: "no answer"}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
	if err != nil {
		a.err = "cut"
	}
	return a
}

// post sends the dialect's body to its path.
func (r *rig) post(t *testing.T, header ...string) answer {
	t.Helper()
	d := r.route.Dialect
	return ask(r.client(t), http.MethodPost, "http://gw"+paths[d], bodies[d], header...)
}

// raw writes text to a proven connection and returns all that comes back.
func (r *rig) raw(t *testing.T, text string) string {
	t.Helper()
	c, err := r.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	go func() { _, _ = io.WriteString(c, text) }()
	back, _ := io.ReadAll(c)
	return string(back)
}
