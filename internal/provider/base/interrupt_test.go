package base_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
)

// agents are the CLIs of this test: this program in their place, which speaks just
// enough of each one's protocol to begin a turn. What it makes of an interrupt is
// given to it.
var agents = map[string]func(interrupted func(report func())){"codex": playCodex, "codex exec": playExec, "claude": playClaude, "opencode": playOpencode}

const actsAs, onInterrupt = "THOLE_TEST_AGENT", "THOLE_TEST_INTERRUPT"

func TestMain(m *testing.M) {
	if play := agents[os.Getenv(actsAs)]; play != nil {
		play(func(report func()) {
			if os.Getenv(onInterrupt) == "dies of it" {
				os.Exit(1)
			}
			report()
		})
		return
	}
	os.Exit(m.Run())
}

// An interrupt that we asked for ends interrupted, whatever the CLI makes of it.
func TestAnInterruptEndsInterrupted(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(binary string) provider.Provider{
		"codex":      func(binary string) provider.Provider { return codex.New(binary) },
		"codex exec": func(binary string) provider.Provider { return codex.NewExec(binary) },
		"claude":     func(binary string) provider.Provider { return claude.New(claude.Config{Binary: binary}) },
		"opencode":   func(binary string) provider.Provider { return opencode.New(opencode.Config{Binary: binary}) },
	} {
		for _, reaction := range []string{"calls it a failure", "dies of it"} {
			t.Run(name+" "+reaction, func(t *testing.T) {
				t.Parallel()
				binary := filepath.Join(t.TempDir(), "cli")
				script := fmt.Sprintf("#!/bin/sh\n%s='%s' %s='%s' exec '%s'\n", actsAs, name, onInterrupt, reaction, self)
				if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
				s, err := open(binary).Open(t.Context(), provider.SessionConfig{Thread: "t", Dir: t.TempDir(), Data: t.TempDir(), Auth: t.TempDir(), Settings: event.Settings{Profile: thole.ProfileFull}})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				var ended provider.Ended
				err = s.Run(t.Context(), provider.Turn{ID: "turn", Input: thole.Text("hello")}, func(e event.Event) {
					switch e.Kind {
					case event.ThreadUpdated: // it has begun
						if err := s.Stop(context.Background()); err != nil {
							t.Error(err)
						}
					case event.TurnEnded:
						ended = provider.EndedOf(e)
					}
				})
				if err != nil || ended.Outcome != thole.OutcomeInterrupted || ended.Error != nil {
					t.Errorf("%v, %+v, %v", err, ended, ended.Error)
				}
			})
		}
	}
}

// hear reads JSON lines, and says lines.
func hear(on func(line string, id json.RawMessage)) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var m struct {
			ID      json.RawMessage `json:"id"`
			Request json.RawMessage `json:"request_id"`
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		if m.ID == nil {
			m.ID = m.Request
		}
		on(lines.Text(), m.ID)
	}
}

func playCodex(interrupted func(func())) {
	hear(func(line string, id json.RawMessage) {
		method := func(name string) bool { return strings.Contains(line, `"method":"`+name+`"`) }
		switch {
		case method("thread/start"):
			fmt.Fprintf(os.Stdout, "{\"id\":%s,\"result\":{\"thread\":{\"id\":\"t\"},\"model\":\"m\"}}\n", id)
		case method("turn/start"):
			fmt.Fprintf(os.Stdout, "{\"id\":%s,\"result\":{\"turn\":{\"id\":\"u\",\"status\":\"inProgress\"}}}\n", id)
		case method("turn/interrupt"):
			interrupted(func() {
				fmt.Fprintln(os.Stdout, `{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"failed","error":{"message":"stream disconnected"}}}}`)
			})
		case id != nil:
			fmt.Fprintf(os.Stdout, "{\"id\":%s,\"result\":{}}\n", id)
		}
	})
}

func playExec(interrupted func(func())) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	fmt.Fprintln(os.Stdout, `{"type":"thread.started","thread_id":"t"}`)
	<-stop
	interrupted(func() { fmt.Fprintln(os.Stdout, `{"type":"turn.failed","error":{"message":"stream disconnected"}}`) })
}

func playClaude(interrupted func(func())) {
	hear(func(line string, id json.RawMessage) {
		switch {
		case strings.Contains(line, `"type":"user"`):
			fmt.Fprintln(os.Stdout, `{"type":"system","subtype":"init","model":"m"}`)
		case strings.Contains(line, `"subtype":"interrupt"`):
			interrupted(func() {
				fmt.Fprintln(os.Stdout, `{"type":"result","subtype":"error_during_execution","is_error":true,"api_error_status":500,"errors":["stream disconnected"]}`)
			})
		default:
			fmt.Fprintf(os.Stdout, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":%s,\"response\":{}}}\n", id)
		}
	})
}

func playOpencode(interrupted func(func())) {
	mux := http.NewServeMux()
	news := make(chan string, 3)
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, r *http.Request) {
		for say := `{"type":"server.connected"}`; ; {
			fmt.Fprintf(w, "data: %s\n\n", say)
			w.(http.Flusher).Flush()
			select {
			case say = <-news:
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("GET /agent", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"name":"build"}]`) })
	mux.HandleFunc("POST /session", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":"ses_1"}`) })
	var prompt string
	mux.HandleFunc("POST /session/{id}/prompt_async", func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ MessageID string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		prompt = body.MessageID
	})
	mux.HandleFunc("POST /session/{id}/abort", func(w http.ResponseWriter, _ *http.Request) {
		interrupted(func() {
			news <- `{"type":"message.updated","properties":{"info":{"id":"` + prompt + `","role":"user","sessionID":"ses_1"}}}`
			news <- `{"type":"message.updated","properties":{"info":{"id":"msg_z","parentID":"` + prompt + `","role":"assistant","sessionID":"ses_1","time":{"completed":1},"error":{"name":"UnknownError","data":{"message":"stream disconnected"}}}}}`
			news <- `{"type":"session.idle","properties":{"sessionID":"ses_1"}}`
		})
		fmt.Fprint(w, "true")
	})
	web := httptest.NewServer(mux)
	fmt.Fprintln(os.Stdout, "listening on "+web.URL)
	select {}
}
