//go:build linux

package keys

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
)

// A token of the gateway is good for its own thread's open turn, from its own box, for the
// models of its routes; and for nothing else.
func TestATokenIsGoodForItsTurnOnly(t *testing.T) {
	t.Parallel()
	w, _ := gatewayed(t)
	a, b := w.thread("claude", modelsim.ClaudeModel).betray(), w.thread("claude", modelsim.ClaudeModel).betray()
	if a.token == b.token {
		t.Fatal("two executors have one token")
	}
	call := func(token string) string { return post("/claude/v1/messages", token, message(modelsim.ClaudeModel)) }
	right := a.proof()
	expect := func(what string, got answer, status ...int) {
		t.Helper()
		if !slices.Contains(status, got.status) {
			t.Errorf("%s: %d, want %v: %.300s", what, got.status, status, got.text)
		}
	}
	all := a.ask(call(a.token), post("/claude/v1/messages", a.token, message("claude-opus-4-1")), post("/claude/v1/messages", a.token, message("*")),
		post("/codex/v1/responses", a.token, `{"model":"`+modelsim.Model+`","input":"hi"}`), call(""), call("tgw_"+strings.Repeat("0", 64)), call(a.token+"0"), call(b.token),
		post("/claude/v1/messages", "", message(modelsim.ClaudeModel), "Authorization: Bearer x", "Authorization: Bearer "+a.token))
	expect("during its turn", all[0], 200)
	expect("for a model that is not on its list", all[1], 400, 404)
	expect("for every model", all[2], 400, 404)
	expect("for a route of another CLI", all[3], 404)
	expect("without a token", all[4], 401)
	expect("with another token", all[5], 401)
	expect("with a longer token", all[6], 401)
	expect("with a token of another executor", all[7], 401)
	expect("with two tokens", all[8], 400, 401)
	expect("from another box", b.ask(call(a.token))[0], 401)
	expect("from the host without a proof", w.knock("", call(a.token)), 0)
	expect("from the host with an empty proof", w.knock("THOLE-GATEWAY \n", call(a.token)), 0)
	expect("from the host with a wrong proof", w.knock("THOLE-GATEWAY "+strings.Repeat("0", 64)+"\n", call(a.token)), 401)
	expect("from the host with the proof of another executor", w.knock(b.proof(), call(a.token)), 401)
	expect("from the host with the proof", w.knock(right, call(a.token)), 200) // the proof is what the others lack

	a.letGo()
	expect("after the turn", a.ask(call(a.token))[0], 401)
	expect("after the turn with the proof", w.knock(right, call(a.token)), 401)
	expect("during the turn of another", b.ask(call(b.token))[0], 200)
	next := a.start("sim: run until test -e /workspace/again; do sleep 0.05; done ;; say ok")
	a.shows(next)
	expect("during the next turn", a.ask(call(a.token))[0], 200)
	a.lay("again", "")
	a.settle(next)

	a.thole("thread", "close", a.id)
	w.call("DELETE", "/sessions/"+a.id, nil, nil)
	expect("after the executor is gone", w.knock(right, call(a.token)), 401)
	expect("from another box, after the executor is gone", b.ask(call(a.token))[0], 401)
	b.letGo()
}

// The gateway goes nowhere but to its upstream, whatever a request says.
func TestTheGatewayGoesNowhereElse(t *testing.T) {
	t.Parallel()
	decoy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var knocks atomic.Int64
	t.Cleanup(func() { decoy.Close() })
	go func() {
		for {
			c, err := decoy.Accept()
			if err != nil {
				return
			}
			knocks.Add(1)
			c.Close()
		}
	}()
	at := decoy.Addr().String()
	w, upstream := gatewayed(t)
	upstream.handler = redirects(upstream.handler, "http://"+at+"/")
	o := w.thread("claude", modelsim.ClaudeModel).betray()
	plain := message(modelsim.ClaudeModel)
	whole := post("/claude/v1/messages", o.token, plain)
	raw := func(old, text string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("%q is not in the request", old)
		}
		return strings.Replace(whole, old, text, 1)
	}
	target := func(text string) string { return raw("/claude/v1/messages", text) }
	body := func(text string) string { return post("/claude/v1/messages", o.token, text) }
	with := func(headers ...string) string { return post("/claude/v1/messages", o.token, plain, headers...) }
	member := func(text string) string { return body(strings.Replace(plain, "{", "{"+text+",", 1)) }
	tries := map[string]string{
		"absolute form":           target("http://" + at + "/v1/messages"),
		"absolute form, a route":  target("http://" + at + "/claude/v1/messages"),
		"absolute https":          target("https://" + at + "/claude/v1/messages"),
		"user info":               target("http://x@" + at + "/claude/v1/messages"),
		"no scheme":               target("//" + at + "/claude/v1/messages"),
		"address in the path":     target("/http://" + at + "/v1/messages"),
		"address as the route":    target("/" + at + "/v1/messages"),
		"encoded address":         target("/http%3A%2F%2F" + at + "/v1/messages"),
		"encoded slash":           target("/claude%2fv1/messages"),
		"encoded dots":            target("/claude/v1/%2e%2e/%2e%2e/messages"),
		"dots":                    target("/claude/v1/../../admin"),
		"two slashes":             target("/claude//v1/messages"),
		"backslash":               target(`/claude\v1/messages`),
		"fragment":                target("/claude/v1/messages#@" + at),
		"at sign":                 target("/@" + at + "/v1/messages"),
		"query with an address":   target("/claude/v1/messages?base_url=http://" + at),
		"another path":            target("/claude/v1/files"),
		"connect":                 "CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\nAuthorization: Bearer " + o.token + "\r\n\r\n",
		"connect to a route":      "CONNECT /claude/v1/messages HTTP/1.1\r\nHost: " + at + "\r\nAuthorization: Bearer " + o.token + "\r\n\r\n",
		"trace":                   raw("POST", "TRACE"),
		"options":                 "OPTIONS * HTTP/1.1\r\nHost: " + at + "\r\n\r\n",
		"line break in a header":  with("X-App: a\n\nGET http://" + at + "/ HTTP/1.1"),
		"two lengths":             with("Content-Length: 5"),
		"length and chunks":       with("Transfer-Encoding: chunked"),
		"version 2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"version 0.9":             "GET http://" + at + "/\r\n\r\n",
		"proxy line":              "PROXY TCP4 127.0.0.1 127.0.0.1 1 1\r\n" + whole,
		"another proof":           "THOLE-GATEWAY x\n" + whole,
		"tool that fetches":       member(`"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]`),
		"connector":               member(`"mcp_servers":[{"type":"url","url":"http://` + at + `","name":"x"}]`),
		"upstream that redirects": body(message(modelsim.ClaudeModel + "-elsewhere")),
	}
	passing := map[string]string{ // these reach the upstream, as if nothing were said
		"host": raw("127.0.0.1:3129", at), "forwarded": with("X-Forwarded-Host: "+at, "Forwarded: host="+at, "X-Original-URL: http://"+at, "X-Rewrite-URL: http://"+at, "X-Forwarded-For: "+at),
		"upgrade": with("Connection: Upgrade", "Upgrade: websocket"), "plain version 2": with("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
		"own key": with("X-Api-Key: sk-mine", "Cookie: a=b", "Proxy-Authorization: Basic eDp5", "Anthropic-Organization: x"), "image": body(strings.Replace(plain, `"sim: say answered"`,
			`[{"type":"text","text":"sim: say answered"},{"type":"image","source":{"type":"url","url":"http://`+at+`/x.png"}}]`, 1)),
	}
	for _, pass := range []bool{false, true} {
		names, texts := []string{}, []string{}
		list := tries
		if pass {
			list = passing
		}
		for name, text := range list {
			names, texts = append(names, name), append(texts, text)
		}
		for i, got := range o.ask(texts...) {
			if ok := got.status == 200 && strings.Contains(got.text, "answered"); ok != pass && !(pass && got.status == 400) {
				t.Errorf("%s: %d %.300s", names[i], got.status, got.text)
			}
			if got.status == 101 || got.status >= 300 && got.status < 400 || strings.Contains(got.text, "Location:") {
				t.Errorf("%s: %.300s", names[i], got.text)
			}
		}
	}
	o.letGo()
	for line := range strings.Lines(string(upstream.seen.Bytes())) {
		words := strings.Fields(line)
		if len(words) < 4 || words[1] != "/v1/messages" && words[1] != "/v1/messages?beta=true" && words[1] != "/v1/models" || !strings.Contains(line, w.word) || strings.Contains(line, "sk-mine") {
			t.Errorf("the upstream got %s", line)
		}
	}
	if n := bytes.Count(upstream.seen.Bytes(), []byte("\n")); n < 4 {
		t.Errorf("the upstream got %d requests", n)
	}
	if n := knocks.Load(); n != 0 {
		t.Errorf("another place was spoken to %d times", n)
	}
	if c, err := net.Dial("tcp", at); err != nil {
		t.Errorf("nobody could have been spoken to there: %v", err)
	} else {
		_, _ = c.Read(make([]byte, 1)) // its end
		if knocks.Load() != 1 {
			t.Error("the decoy does not count")
		}
	}
}

// redirects sends a client that asks for one model to another place.
func redirects(h http.Handler, to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err == nil && bytes.Contains(body.Bytes(), []byte("-elsewhere")) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		r.Body = http.NoBody
		if body.Len() > 0 {
			r.Body = readCloser{&body}
		}
		h.ServeHTTP(w, r)
	})
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

// gatewayed is a world whose one upstream is a scripted model that wants a key.
func gatewayed(t *testing.T) (*world, *witness) {
	t.Helper()
	upstream := &witness{handler: modelsim.New(modelsim.Options{})}
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	w := newWorld(t)
	w.agents()
	w.upstreams(server.URL, "vault:model")
	w.begin()
	w.secret("model", w.key("sk-ant-api03-", "-vault-model"), "--provider", "anthropic")
	return w, upstream
}
