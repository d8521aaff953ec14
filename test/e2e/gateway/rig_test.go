// Package gateway_test runs the real agent CLIs through the gateway, with the user's own
// logins and keys on its other side.
package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
)

const (
	token = "tgw_0123456789abcdef"
	proof = "a secret of one executor"
)

func TestMain(m *testing.M) { providertest.Main(m) }

// rig is a gateway with the logins of one home. Whatever service a call is for, the
// scripted model answers it.
type rig struct {
	testing.TB
	home  string
	env   map[string]string
	cli   string
	tools bool

	mu   sync.Mutex
	seen []seen
}

// seen is a call as a service saw it.
type seen struct {
	url    string
	header http.Header
	body   string
}

func newRig(t testing.TB, cli string, env map[string]string) *rig {
	return &rig{TB: t, home: t.TempDir(), env: env, cli: cli, tools: true}
}

// put writes a file of the user's home.
func (r *rig) put(name string, body any) {
	r.Helper()
	data, ok := body.(string)
	if !ok {
		raw, err := json.Marshal(body)
		if err != nil {
			r.Fatal(err)
		}
		data = string(raw)
	}
	path := filepath.Join(r.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		r.Fatal(err)
	}
}

// Claim implements gateway.Tokens for one token.
func (r *rig) Claim(_ context.Context, t, p [32]byte) (gateway.Claim, error) {
	if t != sha256.Sum256([]byte(token)) || p != sha256.Sum256([]byte(proof)) {
		return gateway.Claim{}, thole.Errorf(thole.CodeUnauthorized, "unknown token")
	}
	return gateway.Claim{Executor: "e", Thread: "t", Turn: "u", Owner: thole.DefaultOwner, Provider: r.cli}, nil
}

type noLedger struct{}

func (noLedger) Begin(context.Context, gateway.Call) (string, error) { return "c", nil }
func (noLedger) End(context.Context, string, gateway.Result) error   { return nil }

// configure leads a session to the gateway.
func (r *rig) configure(t testing.TB, model string, cfg *provider.SessionConfig) {
	t.Helper()
	to, err := url.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := upstream.New(upstream.Config{
		Login: provider.Login{Home: r.home, Getenv: func(k string) string { return r.env[k] }},
		Tools: r.tools, Client: &http.Client{Transport: services{r, to}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := routes.Grant(t.Context(), gateway.Claim{Owner: thole.DefaultOwner, Provider: r.cli}, token)
	if err != nil {
		t.Fatal(err)
	}
	g = g.At(r.listen(t, routes))
	for k, v := range g.Env {
		cfg.Env[k] = v
	}
	cfg.Env["OPENCODE_DISABLE_MODELS_FETCH"], cfg.Env["OPENCODE_DISABLE_DEFAULT_PLUGINS"] = "1", "1"
	if err := g.Place(cfg.Auth); err != nil {
		t.Fatal(err)
	}
}

// listen serves the gateway and returns the address of a forwarder to it.
func (r *rig) listen(t testing.TB, routes gateway.Routes) string {
	t.Helper()
	var lc net.ListenConfig
	open := func() net.Listener {
		l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	inner, outer := open(), open()
	g := gateway.New(gateway.Config{Tokens: r, Routes: routes, Ledger: noLedger{}})
	srv := gateway.NewServer(g)
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(gateway.ListenProof(inner)) })
	wg.Go(func() {
		for {
			in, err := outer.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { forward(in, inner.Addr().String()) })
		}
	})
	t.Cleanup(func() {
		_ = outer.Close()
		_ = srv.Close()
		g.Close()
		wg.Wait()
	})
	return outer.Addr().String()
}

func forward(in net.Conn, to string) {
	defer in.Close()
	out, err := net.DialTimeout("tcp", to, 10*time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	if _, err := io.WriteString(out, gateway.ProofLine(proof)); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
	<-done
}

// services stands for every model service on the network.
type services struct {
	r  *rig
	to *url.URL
}

func (s services) RoundTrip(req *http.Request) (*http.Response, error) {
	body := []byte{}
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	s.r.mu.Lock()
	s.r.seen = append(s.r.seen, seen{req.URL.String(), req.Header.Clone(), string(body)})
	s.r.mu.Unlock()
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = s.to.Scheme, s.to.Host, ""
	for _, prefix := range []string{"/backend-api/codex", "/zen/v1", "/openai/v1", "/v1"} {
		if rest, ok := strings.CutPrefix(out.URL.Path, prefix); ok {
			out.URL.Path = "/v1" + rest
			break
		}
	}
	out.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(out)
}

// calls are those that services saw, none of which may hold the token.
func (r *rig) calls() []seen {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		r.Error("no call reached a service")
	}
	for _, s := range r.seen {
		if all, _ := json.Marshal(s.header); strings.Contains(string(all)+s.body+s.url, token) {
			r.Errorf("the token reached %s", s.url)
		}
	}
	return r.seen
}

// jwt is a token that says when it ends.
func jwt(claims map[string]any) string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	return part(map[string]any{"alg": "none"}) + "." + part(claims) + ".c2ln"
}
