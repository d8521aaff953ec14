// Package upstream is a model service on loopback that fails on purpose, in each dialect:
// it hangs, cuts, refuses, drips and sends too much. What it answers when it works is fixed
// text with a known usage. internal/modelsim is the one that converses; this one is for
// what stands between a client and its model.
package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole"
)

// Fault is how an answer goes wrong.
type Fault string

const (
	None         Fault = ""
	Hang         Fault = "hang"         // no answer until the client leaves
	HangInside   Fault = "hang inside"  // silent after the first event
	CutBefore    Fault = "cut before"   // the connection ends without an answer
	CutHead      Fault = "cut head"     // and here after the answer's head
	CutInside    Fault = "cut inside"   // and here after the first event
	Drip         Fault = "drip"         // one event for each call of Next
	Giant        Fault = "giant"        // an event of 3 MiB before the last
	WrongType    Fault = "wrong type"   // a stream that calls itself HTML
	HugeHeaders  Fault = "huge headers" // 512 KiB of them
	ManyHeaders  Fault = "many headers" // cookies, hop-by-hop headers and the account's
	Status401    Fault = "401"          // always
	Status401X1  Fault = "401 once"     // until a renewed credential comes
	Status403    Fault = "403"
	Status429    Fault = "429"
	Status500    Fault = "500"
	Status529    Fault = "529"
	Redirect     Fault = "redirect"
	ShortLength  Fault = "short length"  // fewer bytes than Content-Length says
	FailedEvent  Fault = "failed event"  // an error inside the stream
	WithoutUsage Fault = "without usage" // a whole stream that does not say it
)

// Usage is what each answer without a fault reports.
var Usage = thole.Usage{Input: 11, Output: 5, CacheRead: 3}

// Request is one that arrived.
type Request struct {
	Method, URI, Host string
	Header            http.Header
	Body              []byte
}

// Server is a model service. Its methods are safe for concurrent use.
type Server struct {
	srv  *httptest.Server
	next chan struct{}
	stop chan struct{}

	mu       sync.Mutex // guards what follows
	fault    Fault
	requests []Request
	open     int // answers under way
	change   *sync.Cond
}

// Start runs a service for the length of a test.
func Start(t testing.TB, fault Fault) *Server {
	s := &Server{fault: fault, next: make(chan struct{}), stop: make(chan struct{})}
	s.change = sync.NewCond(&s.mu)
	s.srv = httptest.NewUnstartedServer(s)
	s.srv.Config.ErrorLog = nil
	s.srv.Start()
	t.Cleanup(func() {
		close(s.stop)
		s.srv.CloseClientConnections()
		s.srv.Close()
	})
	return s
}

// URL is the base address, with /v1.
func (s *Server) URL() string { return s.srv.URL + "/v1" }

// Set changes the fault of the requests that come from now on.
func (s *Server) Set(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Next lets a dripping answer send one event.
func (s *Server) Next() { s.next <- struct{}{} }

// Requests returns what arrived so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await waits until n requests arrived and open of them are not ended.
func (s *Server) Await(n, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.requests) != n || s.open != open {
		s.change.Wait()
	}
}

func (s *Server) count(r *Request, open int) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r != nil {
		s.requests = append(s.requests, *r)
	}
	s.open += open
	s.change.Broadcast()
	return s.fault
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fault := s.count(&Request{Method: r.Method, URI: r.RequestURI, Host: r.Host, Header: r.Header.Clone(), Body: body}, 1)
	defer s.count(nil, -1)
	s.answer(w, r, fault, body)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, fault Fault, body []byte) {
	wait := func() {
		select {
		case <-r.Context().Done():
		case <-s.stop:
		}
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("Request-Id", "req_1")
	stream := bytes.Contains(body, []byte(`"stream":true`))
	switch fault {
	case Hang:
		wait()
	case CutBefore:
		panic(http.ErrAbortHandler)
	case Redirect:
		http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		return
	case Status401, Status403, Status429, Status500, Status529:
		s.refuse(w, string(fault))
		return
	case Status401X1:
		if !strings.Contains(r.Header.Get("Authorization"), "renewed") {
			s.refuse(w, "401")
			return
		}
	case HugeHeaders:
		for i := range 512 {
			h.Set(fmt.Sprintf("X-Ratelimit-%d", i), strings.Repeat("x", 1024))
		}
	case ManyHeaders:
		for _, name := range []string{
			"Set-Cookie", "Anthropic-Organization-Id", "Openai-Organization", "X-Powered-By", "Cf-Ray", "Trailer", "Keep-Alive", "Alt-Svc", "Location",
			"Www-Authenticate", "X-Ratelimit-Remaining-Tokens", "Anthropic-Ratelimit-Requests-Remaining", "Retry-After", "X-Codex-Turn-State",
		} {
			h.Set(name, "v")
		}
	}
	if !stream {
		text := plain(r.URL.Path)
		h.Set("Content-Type", "application/json")
		if fault == ShortLength {
			h.Set("Content-Length", fmt.Sprint(len(text)+10))
		}
		_, _ = io.WriteString(w, text)
		if fault == ShortLength {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		return
	}
	h.Set("Content-Type", "text/event-stream")
	if fault == WrongType {
		h.Set("Content-Type", "text/html")
	}
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	if fault == CutHead {
		panic(http.ErrAbortHandler)
	}
	for i, event := range s.events(r.URL.Path, fault) {
		if fault == Drip {
			select {
			case <-s.next:
			case <-r.Context().Done():
				panic(http.ErrAbortHandler)
			case <-s.stop:
				panic(http.ErrAbortHandler)
			}
		}
		_, _ = io.WriteString(w, event)
		_ = flush()
		switch {
		case fault == CutInside && i == 0:
			panic(http.ErrAbortHandler)
		case fault == HangInside && i == 0:
			wait()
		}
	}
}

func (s *Server) refuse(w http.ResponseWriter, status string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if status == "429" {
		h.Set("Retry-After", "1")
	}
	var code int
	_, _ = fmt.Sscan(status, &code)
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"type":"error","error":{"type":"t%s","message":"refused with %s"}}`, status, status)
}

// plain is an answer in one piece.
func plain(path string) string {
	switch {
	case strings.HasSuffix(path, "/count_tokens"):
		return `{"input_tokens":14}`
	case strings.HasSuffix(path, "/messages"):
		return `{"type":"message","model":"m-1","content":[{"type":"tool_use","input":{"usage":{"input_tokens":1,"output_tokens":1}}}],"usage":{"input_tokens":11,"cache_read_input_tokens":3,"output_tokens":5}}`
	case strings.HasSuffix(path, "/chat/completions"):
		return `{"object":"chat.completion","model":"m-1","choices":[],"usage":{"prompt_tokens":14,"completion_tokens":5,"total_tokens":19,"prompt_tokens_details":{"cached_tokens":3}}}`
	case strings.HasSuffix(path, "/models"):
		return `{"object":"list","data":[{"id":"m-1"}]}`
	}
	return `{"object":"response","model":"m-1","tools":[{"parameters":{"usage":{"input_tokens":1}}}],"output":[],"usage":{"input_tokens":14,"input_tokens_details":{"cached_tokens":3},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0}}}`
}

// events are an answer in pieces.
func (s *Server) events(path string, fault Fault) []string {
	text := "hello"
	if fault == Giant {
		text = strings.Repeat("0123456789abcdef", 3<<16)
	}
	usage := func(s string) string {
		if fault == WithoutUsage {
			return "null"
		}
		return s
	}
	var all []string
	switch {
	case strings.HasSuffix(path, "/messages"):
		all = []string{
			`{"type":"message_start","message":{"model":"m-1","usage":` + usage(`{"input_tokens":11,"cache_read_input_tokens":3,"output_tokens":1}`) + `}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + ` \"usage\":{}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + usage(`{"output_tokens":5}`) + `}`,
			`{"type":"message_stop"}`,
		}
		if fault == FailedEvent {
			all[2], all[3] = `{"type":"error","error":{"type":"overloaded_error","message":"no"}}`, ""
		}
		for i, e := range all {
			if e != "" {
				name, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
				all[i] = "event: " + name + "\ndata: " + e + "\n\n"
			}
		}
		return all
	case strings.HasSuffix(path, "/chat/completions"):
		all = []string{
			`{"object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"content":"` + text + `"}}],"usage":null}`,
			`{"object":"chat.completion.chunk","model":"m-1","choices":[],"usage":` + usage(`{"prompt_tokens":14,"completion_tokens":5,"total_tokens":19,"prompt_tokens_details":{"cached_tokens":3}}`) + `}`,
			`[DONE]`,
		}
		if fault == FailedEvent {
			all = []string{all[0], `{"error":{"message":"no"}}`}
		}
	default:
		all = []string{
			`{"type":"response.created","response":{"model":"m-1","status":"in_progress","usage":null}}`,
			`{"type":"response.output_text.delta","delta":"hello"}`,
			`{"type":"response.completed","response":{"model":"m-1","output":["` + text + `"],"tools":[{"usage":{"input_tokens":1}}],"usage":` + usage(`{"input_tokens":14,"input_tokens_details":{"cached_tokens":3},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0}}`) + `}}`,
		}
		if fault == FailedEvent {
			all[2] = `{"type":"response.failed","response":{"model":"m-1","error":{"code":"x"},"usage":null}}`
		}
	}
	for i := range all {
		all[i] = "data: " + all[i] + "\n\n"
	}
	return all
}
