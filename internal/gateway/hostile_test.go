package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/upstream"
)

// TestTargets is the matrix of request targets that would reach another place if any of
// them were passed on or cleaned up.
func TestTargets(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Anthropic, s)
	body := bodies[Anthropic]
	send := func(head string, lines ...string) string {
		return r.raw(t, head+"\r\nHost: gw\r\nAuthorization: Bearer "+goodToken+"\r\nConnection: close\r\n"+
			strings.Join(append(lines, fmt.Sprintf("Content-Length: %d", len(body))), "\r\n")+"\r\n\r\n"+body)
	}
	if got := send("POST /r/v1/messages?beta=true HTTP/1.1"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Fatal(got)
	}
	for _, target := range []string{
		"http://evil.example/r/v1/messages", "https://127.0.0.1/r/v1/messages", "//evil.example/r/v1/messages", "//r/v1/messages", "/r//v1/messages",
		"/r/v1//messages", "/r/v1/messages/", "/r/v1/messages/../models", "/r/v1/../v1/messages", "/./r/v1/messages", "/r/../r/v1/messages",
		"/r%2fv1/messages", "/r/v1/%6dessages", "/r/v1/messages%2f..%2f..%2fadmin", "/r/v1/messages%00", "/r/v1/messages;x", "/r/v1/messages#x",
		"/%72/v1/messages", "/R/v1/messages", "/other/v1/messages", "/r/v1/files", "/r/v1/messages/batches", "/r/v1/organizations", "/v1/messages", "/r/v1/",
		"/r/v1/responses", "/r/v1/chat/completions", "/r@evil.example/v1/messages", "/r:80/v1/messages", "/r\\v1/messages",
		"/r/v1/messages?beta=true&x=1", "/r/v1/messages?beta=true&beta=true", "/r/v1/messages?beta=a%26b", "/r/v1/messages?api-version=1", "/r/v1/messages?%zz", "/r/v1/messages?a;b", "r/v1/messages",
	} {
		if got := send("POST " + target + " HTTP/1.1"); !strings.HasPrefix(got, "HTTP/1.1 40") {
			t.Errorf("%s: %s", target, clip(got))
		}
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "HEAD", "post", "FOO"} {
		if got := send(method + " /r/v1/messages HTTP/1.1"); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
			t.Errorf("%s: %s", method, clip(got))
		}
	}
	for _, head := range []string{"CONNECT evil.example:443 HTTP/1.1", "OPTIONS * HTTP/1.1", "POST evil.example:443 HTTP/1.1", "POST * HTTP/1.1"} {
		if got := send(head); !strings.HasPrefix(got, "HTTP/1.1 40") {
			t.Errorf("%s: %s", head, clip(got))
		}
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("%d requests went upstream", n)
	}
}

// TestHeadersUpstream: of what a client sends, only the allowed goes on, and nothing of it
// decides where.
func TestHeadersUpstream(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Anthropic, s)
	hostile := []string{
		"Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override",
		"Proxy-Authorization", "Te", "Upgrade", "Via", "Openai-Organization", "Openai-Project", "X-Goog-Api-Key", "Api-Key", "Referer", "Origin", "Range",
		"Idempotency-Key", "Content-Md5", "X-Litellm-Api-Key", "Anthropic-Workspace-Id",
	}
	allowed := map[string]string{"User-Agent": "cli/1", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "a,b", "X-Stainless-Lang": "js", "X-App": "cli"}
	var header []string
	for _, name := range hostile {
		header = append(header, name, "evil.example")
	}
	for name, v := range allowed {
		header = append(header, name, v)
	}
	header = append(header, "X-Api-Key", "sk-of-the-client")
	if got := r.post(t, header...); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	q := s.Requests()[0]
	for name, v := range q.Header {
		switch {
		case name == "Authorization" && v[0] == "Bearer "+realKey, allowed[name] == v[0], name == "Content-Length", name == "Content-Type", name == "Accept-Encoding" && v[0] == "identity":
		default:
			t.Errorf("%s: %s went upstream", name, v)
		}
	}
	for name := range allowed {
		if q.Header.Get(name) == "" {
			t.Errorf("%s did not go upstream", name)
		}
	}
	if base := r.route.Upstreams[0].Base; q.Host != base.Host || q.URI != "/v1/messages" || string(q.Body) != bodies[Anthropic] {
		t.Errorf("%s %s %s", q.Host, q.URI, q.Body)
	}
}

// TestSmuggling: however a request is framed, it is one request upstream, with framing of its own.
func TestSmuggling(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Anthropic, s)
	body := bodies[Anthropic]
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	head := "POST /r/v1/messages HTTP/1.1\r\nHost: gw\r\nConnection: close\r\nAuthorization: Bearer " + goodToken + "\r\n"
	inner := "POST /r/v1/messages HTTP/1.1\r\nHost: evil\r\nX-Smuggled: 1\r\nContent-Length: 0\r\n\r\n"
	for _, framing := range []string{
		"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked + inner,
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + inner,
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked + inner,
		"Transfer-Encoding: xchunked\r\n\r\n" + chunked + inner,
		"Transfer-Encoding : chunked\r\n\r\n" + chunked + inner,
		"Content-Length: 4\r\nContent-Length: 5\r\n\r\n" + body + inner,
		"Content-Length: +4\r\n\r\n" + body + inner,
		"Content-Length: -1\r\n\r\n" + body + inner,
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s%s", len(body)+len(inner), body, inner),
		"X-A: b\r\n\tcontinued: c\r\nContent-Length: 0\r\n\r\n",
		"X-A: b\x00c\r\nContent-Length: 0\r\n\r\n",
		"User-Agent: a\rb\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"Host: second\r\nContent-Length: 0\r\n\r\n",
		"X-Big: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
	} {
		before := len(s.Requests())
		r.raw(t, head+framing)
		all := s.Requests()
		if len(all) > before+1 {
			t.Errorf("%q became %d requests", clip(framing), len(all)-before)
		}
		for _, q := range all[before:] {
			if string(q.Body) != body || q.Header.Get("X-Smuggled") != "" {
				t.Errorf("%q sent %q", clip(framing), q.Body)
			}
		}
	}
}

func TestWhoMayAsk(t *testing.T) {
	for _, d := range dialects {
		s := upstream.Start(t, upstream.None)
		r := newRig(t, d, s)
		for _, header := range [][]string{
			{"Authorization", ""}, {"Authorization", "Bearer tgw_other"}, {"Authorization", "Basic " + goodToken}, {"Authorization", goodToken},
			{"Authorization", "Bearer  "}, {"Authorization", "Bearer " + idleToken},
		} {
			got := r.post(t, header...)
			if got.status != 401 || !shaped(d, got.body) || got.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%v: %+v", header, got)
			}
			if idle := strings.Contains(header[1], idleToken); idle != strings.Contains(got.body, "no turn is open") {
				t.Errorf("%v: %s", header, got.body)
			}
		}
		// A token of another executor's connection is worth nothing.
		c, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "%sPOST %s HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n", ProofLine("another"), paths[d], goodToken)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 401 {
			t.Errorf("%v, %v", resp, err)
		}
		_ = c.Close()
		if len(s.Requests()) != 0 || len(r.ledger.begun) != 0 {
			t.Errorf("%d requests went upstream", len(s.Requests()))
		}
	}
}

type anyToken struct{}

func (anyToken) Claim(context.Context, [32]byte, [32]byte) (Claim, error) { return Claim{}, nil }

// TestWithoutProof: on a listener that asks for no proof, no token is good.
func TestWithoutProof(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Chat, s)
	r.c.Tokens = anyToken{}
	open := httptest.NewServer(r.Gateway)
	defer open.Close()
	if got := ask(open.Client(), http.MethodPost, open.URL+paths[Chat], bodies[Chat]); got.status != 401 || len(s.Requests()) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestApiKeyHeader(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Anthropic, s)
	q, _ := http.NewRequest(http.MethodPost, "http://gw"+paths[Anthropic], strings.NewReader(bodies[Anthropic]))
	q.Header.Set("X-Api-Key", goodToken)
	resp, err := r.client(t).Do(q)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if h := s.Requests()[0].Header; h.Get("X-Api-Key") != "" || h.Get("Authorization") != "Bearer "+realKey {
		t.Errorf("%v", h)
	}
}

func TestProbes(t *testing.T) {
	r := newRig(t, Anthropic)
	for _, at := range []string{"HEAD /", "GET /", "GET /healthz", "HEAD /r", "HEAD /r/"} {
		method, path, _ := strings.Cut(at, " ")
		if got := ask(r.client(t), method, "http://gw"+path, "", "Authorization", ""); got.status != 200 {
			t.Errorf("%s: %+v", at, got)
		}
	}
	for _, at := range []string{"GET /r", "POST /", "GET /metrics", "HEAD /r/v1/models"} {
		method, path, _ := strings.Cut(at, " ")
		if got := ask(r.client(t), method, "http://gw"+path, "", "Authorization", ""); got.status != 404 {
			t.Errorf("%s: %+v", at, got)
		}
	}
}

func TestModels(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Responses, s)
	got := ask(r.client(t), http.MethodGet, "http://gw/r/v1/models?client_version=0.1", "")
	if got.status != 200 || !strings.Contains(got.body, "m-1") || s.Requests()[0].URI != "/v1/models?client_version=0.1" || len(r.ledger.begun) != 0 {
		t.Errorf("%+v, %+v", got, s.Requests())
	}
}

func TestCountTokens(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Anthropic, s)
	got := ask(r.client(t), http.MethodPost, "http://gw/r/v1/messages/count_tokens?beta=true", `{"model":"m-1","messages":[]}`)
	res := r.ledger.results(t)
	if got.status != 200 || got.body != `{"input_tokens":14}` || s.Requests()[0].URI != "/v1/messages/count_tokens?beta=true" ||
		len(res) != 1 || !res[0].Known || res[0].Usage.Input != 0 || r.ledger.begun[0].MaxOutput != 0 {
		t.Errorf("%+v, %+v", got, res)
	}
}

func TestBaseIsKept(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Chat)
	r.route.Upstreams = []Upstream{at(t, "azure", strings.TrimSuffix(s.URL(), "/v1")+"/openai/x/?api-version=1")}
	r.route.Upstreams[0].Rename = map[string]string{"m-1": `de"ployment`}
	if got := r.post(t); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	q := s.Requests()[0]
	if want := strings.Replace(bodies[Chat], `"m-1"`, `"de\"ployment"`, 1); q.URI != "/openai/x/chat/completions?api-version=1" || string(q.Body) != want {
		t.Errorf("%s %s", q.URI, q.Body)
	}
}
