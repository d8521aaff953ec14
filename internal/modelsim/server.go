package modelsim

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	apiMessages  = "messages"
	apiChat      = "chat"
	apiResponses = "responses"
)

// Options of a scripted model. The zero value answers plain prompts at full speed.
type Options struct {
	Scripts map[string]Script // run by "sim: script NAME"
	Default *Script           // for prompts without directives, instead of canned answers
	Pace    time.Duration     // between chunks of a step that names no pace
	Demo    bool              // plain answers tell a person what else to try
}

// Sim is one scripted model. All methods are safe for concurrent use.
type Sim struct {
	opts   Options
	srv    *http.Server
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // requests under way; begun under mu while not closed
	url    string         // set by Start

	mu       sync.Mutex // guards what follows
	closed   bool
	scripts  map[string]Script
	requests []Request
	attempts map[string]int
	arrived  chan struct{} // closed and replaced when a request is recorded
}

// New returns a model that does not listen yet.
func New(opts Options) *Sim {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sim{
		opts: opts, ctx: ctx, cancel: cancel,
		scripts: maps.Clone(opts.Scripts), attempts: map[string]int{}, arrived: make(chan struct{}),
	}
	if s.scripts == nil {
		s.scripts = map[string]Script{}
	}
	s.srv = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	return s
}

// Serve answers on ln until Close. It returns nil after Close.
func (s *Sim) Serve(ln net.Listener) error {
	if err := s.srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve scripted model: %w", err)
	}
	return nil
}

// Close stops listening, breaks off every answer, hung ones too, and returns when
// no request is under way. It may be called again.
func (s *Sim) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	err := s.srv.Close()
	s.work.Wait()
	return err
}

// TB is the part of testing.TB that Start needs; the interface keeps the testing
// package out of the binary.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start runs a model on a free loopback port for the length of a test.
func Start(t TB, opts ...Options) *Sim {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for the scripted model: %v", err)
	}
	s := New(o)
	s.url = "http://" + ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; err != nil {
			t.Fatalf("scripted model: %v", err)
		}
	})
	return s
}

// URL is the base address of a model made by Start, without /v1.
func (s *Sim) URL() string { return s.url }

// SetScript adds or replaces a named script.
func (s *Sim) SetScript(name string, script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[name] = script
}

func (s *Sim) script(name string) (Script, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	script, ok := s.scripts[name]
	return script, ok
}

// begin counts a request in, unless Close already waits for the last one.
func (s *Sim) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// ServeHTTP routes by the end of the path, because each CLI joins its base address
// and the path in its own way.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.work.Done()
	path := strings.TrimSuffix(r.URL.Path, "/")
	if r.Method != http.MethodPost {
		s.serveGet(w, r, path)
		return
	}
	body, err := readBody(r)
	if err != nil {
		writeError(w, "", &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()})
		return
	}
	switch {
	case strings.HasSuffix(path, "/messages/count_tokens"):
		s.record(Request{Kind: KindOther}, r, body)
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": tokens(string(body))})
	case strings.HasSuffix(path, "/messages"):
		s.answer(w, r, apiMessages, body)
	case strings.HasSuffix(path, "/chat/completions"):
		s.answer(w, r, apiChat, body)
	case strings.HasSuffix(path, "/responses"):
		s.answer(w, r, apiResponses, body)
	default:
		s.record(Request{Kind: KindOther}, r, body)
		writeError(w, "", &Fault{Status: http.StatusNotFound, Type: "not_found_error", Message: "no such path " + path})
	}
}

func (s *Sim) serveGet(w http.ResponseWriter, r *http.Request, path string) {
	switch {
	case path == "/sim/requests":
		writeJSON(w, http.StatusOK, s.Requests())
	case strings.HasSuffix(path, "/models"):
		s.record(Request{Kind: KindOther}, r, nil)
		writeJSON(w, http.StatusOK, modelList())
	case path == "" || r.Method == http.MethodHead:
		s.record(Request{Kind: KindOther}, r, nil)
		writeJSON(w, http.StatusOK, map[string]any{"ok": true})
	default:
		s.record(Request{Kind: KindOther}, r, nil)
		writeError(w, "", &Fault{Status: http.StatusNotFound, Type: "not_found_error", Message: "no such path " + path})
	}
}

func (s *Sim) answer(w http.ResponseWriter, r *http.Request, api string, body []byte) {
	c, err := decode(api, body)
	if err != nil {
		s.record(Request{API: api, Kind: KindOther}, r, body)
		writeError(w, api, &Fault{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: err.Error()})
		return
	}
	if id := r.Header.Get("X-Session-Id"); id != "" {
		c.key = id
	}
	ch := s.pick(c)
	s.record(Request{API: api, Kind: ch.kind, Model: c.model, Conversation: c.key, Prompt: ch.prompt, Step: ch.n, Tools: c.toolNames(), Stream: c.stream}, r, body)
	rep := &reply{nonce: nonce(), conv: c, step: ch.step, calls: resolve(&ch.step, c)}
	rep.step.Text = ch.step.Text
	rep.usage = rep.defaultUsage(body)
	rep.fault = s.arm(c, ch)
	if ch.step.WaitMS > 0 && sleep(r.Context(), time.Duration(ch.step.WaitMS)*time.Millisecond) != nil {
		return
	}
	if rep.fault != nil && rep.fault.Kind == FaultHTTP {
		writeError(w, api, rep.fault)
		return
	}
	s.send(w, r, rep)
}

// arm returns the step's fault unless it has happened often enough. Attempts are
// counted per conversation, prompt and step, so that a retry finds its count.
func (s *Sim) arm(c *conversation, ch choice) *Fault {
	f := ch.step.Fault
	if f == nil {
		return nil
	}
	if f.Times > 0 {
		key := fmt.Sprintf("%s\x00%d\x00%d\x00%s", c.key, ch.origin, ch.n, ch.prompt)
		s.mu.Lock()
		s.attempts[key]++
		n := s.attempts[key]
		s.mu.Unlock()
		if n > f.Times {
			return nil
		}
	}
	armed := *f
	return &armed
}

func (s *Sim) send(w http.ResponseWriter, r *http.Request, rep *reply) {
	plain := map[string]func() any{apiMessages: rep.messagesPlain, apiChat: rep.chatPlain, apiResponses: rep.responsePlain}
	streamed := map[string]func(*stream) error{apiMessages: rep.messagesStream, apiChat: rep.chatStream, apiResponses: rep.responseStream}
	if !rep.conv.stream {
		if rep.fault != nil && rep.fault.Kind == FaultSSE {
			rep.fault.Status = http.StatusInternalServerError
			writeError(w, rep.conv.api, rep.fault)
			return
		}
		writeJSON(w, http.StatusOK, plain[rep.conv.api]())
		return
	}
	if err := streamed[rep.conv.api](openStream(r.Context(), w, rep, s.opts.Pace)); err != nil {
		// The stream ends without its last event: by the script, because the
		// client went away, or because the server closes. Only an aborted handler
		// breaks the connection instead of ending the body properly.
		panic(http.ErrAbortHandler)
	}
}

func (r *reply) defaultUsage(body []byte) Usage {
	if r.step.Usage != nil {
		return *r.step.Usage
	}
	out := tokens(r.step.Text)
	for _, k := range r.calls {
		out += tokens(k.arguments())
	}
	return Usage{Input: tokens(string(body)), Output: max(1, out), Reasoning: tokens(r.step.Reasoning)}
}

func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that went away needs no answer
}

func writeError(w http.ResponseWriter, api string, f *Fault) {
	kind := f.Type
	if kind == "" {
		kind = errorTypes(f.Status)
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if api == apiMessages {
		writeJSON(w, f.Status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": f.Message}})
		return
	}
	writeJSON(w, f.Status, map[string]any{"error": map[string]any{"type": kind, "message": f.Message, "code": nil, "param": nil}})
}

func errorTypes(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}
