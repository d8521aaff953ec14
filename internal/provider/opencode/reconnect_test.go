package opencode

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/provider/providertest"
)

// The event stream breaks in the middle of a text and has no replay: what was
// missed is read again, and what was emitted already is not emitted twice.
func TestReconnect(t *testing.T) {
	const native = "ses_1"
	prompt := make(chan string, 1)
	var asked string // the prompt's id; written before the stream breaks
	connections := 0
	line := func(w http.ResponseWriter, typ, props string) {
		fmt.Fprintf(w, "data: {\"id\":\"e\",\"type\":%q,\"properties\":%s}\n\n", typ, props)
		w.(http.Flusher).Flush()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, r *http.Request) {
		connections++
		line(w, "server.connected", "{}")
		if connections > 1 {
			<-r.Context().Done()
			return
		}
		asked = <-prompt
		line(w, "message.updated", `{"info":{"id":"`+asked+`","role":"user","sessionID":"ses_1"}}`)
		line(w, "message.updated", `{"info":{"id":"msg_z","parentID":"`+asked+`","role":"assistant","sessionID":"ses_1"}}`)
		line(w, "message.part.updated", `{"sessionID":"ses_1","part":{"id":"p1","messageID":"msg_z","sessionID":"ses_1","type":"text","text":""}}`)
		line(w, "message.part.delta", `{"sessionID":"ses_1","messageID":"msg_z","partID":"p1","field":"text","delta":"Hello "}`)
	})
	mux.HandleFunc("POST /session/{id}/prompt_async", func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "opencode" || pass != "pw" || r.URL.Query().Get("directory") != "/w" {
			t.Errorf("request without password or directory: %s", r.URL)
		}
		var body struct{ MessageID string }
		json.NewDecoder(r.Body).Decode(&body)
		prompt <- body.MessageID
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /session/{id}/message", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `[{"info":{"id":"msg_1","role":"assistant","sessionID":"ses_1","time":{"completed":1}},"parts":[{"id":"old","messageID":"msg_1","sessionID":"ses_1","type":"text","text":"of an earlier turn","time":{"end":1}}]},
			{"info":{"id":%q,"role":"user","sessionID":"ses_1"},"parts":[]},
			{"info":{"id":"msg_z","parentID":%q,"role":"assistant","sessionID":"ses_1","finish":"stop","time":{"completed":2}},"parts":[
				{"id":"p1","messageID":"msg_z","sessionID":"ses_1","type":"text","text":"Hello there","time":{"end":2}},
				{"id":"p2","messageID":"msg_z","sessionID":"ses_1","type":"step-finish","tokens":{"input":7,"output":3}}]}]`, asked, asked)
	})
	mux.HandleFunc("GET /session/{id}/todo", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"content":"a","status":"completed"}]`) })
	for _, path := range []string{"GET /permission", "GET /question"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") })
	}
	mux.HandleFunc("GET /session/status", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	web := httptest.NewServer(mux)
	defer web.Close()
	defer web.CloseClientConnections()

	proc, err := process.Start(process.Spec{Path: "/bin/sleep", Args: []string{"60"}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	close(drained)
	srv := &server{Process: base.Process{Process: proc, Read: drained}, url: web.URL, dir: "/w", password: "pw", client: web.Client()}
	cfg := Config{}
	cfg.defaults()
	s := newSession(cfg, "", provider.SessionConfig{Dir: "/w", Data: t.TempDir()})
	s.Init(s.Options, "", s.Cfg, started{s, srv})
	s.agents = map[string]bool{"build": true}
	s.SetNative(native)
	if srv.feed, err = startFeed(t.Context(), srv); err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	var r providertest.Record
	if err := s.Run(t.Context(), provider.Turn{ID: goldenTurn, Input: thole.Text("hi")}, func(e event.Event) { r = append(r, e) }); err != nil {
		t.Fatal(err)
	}
	if err := providertest.Check(goldenTurn, r); err != nil {
		t.Fatalf("%v; events:\n%s", err, r)
	}
	if r.Outcome() != thole.OutcomeCompleted || r.Text() != "Hello there" || strings.Contains(r.String(), "earlier turn") {
		t.Errorf("outcome %s, text %q", r.Outcome(), r.Text())
	}
	if u := r.Usage(); u.Input != 7 || u.Output != 3 {
		t.Errorf("usage %+v", u)
	}
	if len(r.Of(event.TodoSnapshot)) != 1 {
		t.Errorf("todos were not read again; events:\n%s", r)
	}
}

// started is a session whose server runs already.
type started struct {
	*session
	srv *server
}

func (s started) Start(context.Context) (*server, error) { return s.srv, nil }
