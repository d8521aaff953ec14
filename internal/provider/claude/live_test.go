package claude_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func harness(binary func(testing.TB) string) providertest.Harness {
	return providertest.Harness{
		New: func(t testing.TB) provider.Provider { return claude.New(claude.Config{Binary: binary(t)}) },
		At:  func(_ testing.TB, path string) provider.Provider { return claude.New(claude.Config{Binary: path}) },
		Configure: func(t testing.TB, url string, cfg *provider.SessionConfig) {
			for _, kv := range modelsim.ClaudeEnv(apart(t, url)) {
				k, v, _ := strings.Cut(kv, "=")
				cfg.Env[k] = v
			}
			cfg.Env["CLAUDE_CODE_MAX_RETRIES"] = "2"
			// Else a stream that is always cut is answered whole, see TestCutStream.
			cfg.Env["CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK"] = "1"
			cfg.Model = modelsim.ClaudeModel
		},
		VersionText: func(v string) string { return v + " (Claude Code)" },
		Overflow:    "http 400 type=invalid_request_error prompt is too long: 250000 tokens > 200000 maximum",
	}
}

func TestConformance(t *testing.T) { providertest.Run(t, harness(lab.Claude)) }

func TestConformanceOld(t *testing.T) { providertest.Run(t, harness(lab.ClaudeOld)) }

// apart stands before the scripted model and tells it the user's messages one by
// one. Claude joins messages that nothing was answered to, and puts a message
// that steers into the result of the tool it came beside.
func apart(t testing.TB, model string) string {
	target, err := url.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			body, err := io.ReadAll(r.In.Body)
			if err == nil && strings.HasSuffix(r.In.URL.Path, "/messages") {
				body = split(body)
			}
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.CloseClientConnections)
	t.Cleanup(srv.Close)
	return srv.URL
}

func split(body []byte) []byte {
	var req map[string]any
	if json.Unmarshal(body, &req) != nil {
		return body
	}
	var out []any
	messages, _ := req["messages"].([]any)
	for _, m := range messages {
		msg, _ := m.(map[string]any)
		blocks, ok := msg["content"].([]any)
		if msg["role"] != "user" || !ok {
			out = append(out, m)
			continue
		}
		for _, b := range blocks {
			out = append(out, map[string]any{"role": "user", "content": []any{b}})
			raw, _ := json.Marshal(b)
			var result struct{ Content string }
			json.Unmarshal(raw, &result)
			if _, after, ok := strings.Cut(result.Content, "The user sent a new message while you were working:\n"); ok {
				steer, _, _ := strings.Cut(after, "\n\n")
				out = append(out, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": steer}}})
			}
		}
	}
	req["messages"] = out
	raw, _ := json.Marshal(req)
	return raw
}
