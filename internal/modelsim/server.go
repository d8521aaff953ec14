package modelsim

import (
	"context"
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
	Demo    bool              // plain answers show a person what else to try
	Sample  bool              // the workspace is that of the sample repository
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
