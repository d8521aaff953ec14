//go:build linux

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
)

// stampVar makes TestStampProcess a stand-in for the CLI it names.
const stampVar = "THOLE_BENCH_STAMP"

// TestStampProcess is no test but a CLI whose deltas hold the time of their
// writing.
func TestStampProcess(t *testing.T) {
	what := strings.Split(os.Getenv(stampVar), ":")
	if len(what) != 3 {
		t.Skip("the CLI of other tests")
	}
	n, _ := strconv.Atoi(what[1])
	pace, _ := time.ParseDuration(what[2])
	if what[0] == "opencode" {
		stampServer(n, pace)
		return
	}
	// A turn is the lines that begin it, one line for each delta, and those that end it.
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID        json.Number
			Method    string
			Type      string
			RequestID string `json:"request_id"`
		}
		_ = json.Unmarshal(in.Bytes(), &m)
		switch {
		case m.Method == "initialize":
			fmt.Printf(`{"id":%s,"result":{"userAgent":"stamp/1.0.0"}}`+"\n", m.ID)
		case m.Method == "thread/start":
			fmt.Printf(`{"id":%s,"result":{"thread":{"id":"t"},"model":"m"}}`+"\n", m.ID)
		case m.Method == "turn/start":
			fmt.Printf(`{"id":%s,"result":{"turn":{"id":"u","status":"inProgress"}}}`+"\n", m.ID)
			fmt.Println(`{"method":"item/started","params":{"threadId":"t","turnId":"u","item":{"type":"agentMessage","id":"i","text":""}}}`)
			stamp(n, pace, func(now string) {
				fmt.Println(`{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"u","itemId":"i","delta":"` + now + `"}}`)
			})
			fmt.Println(`{"method":"item/completed","params":{"threadId":"t","turnId":"u","item":{"type":"agentMessage","id":"i","text":""}}}`)
			fmt.Println(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}`)
		case m.Type == "control_request":
			fmt.Println(`{"type":"control_response","response":{"subtype":"success","request_id":"` + m.RequestID + `","response":{}}}`)
		case m.Type == "user":
			streamed := func(event string) {
				fmt.Println(`{"type":"stream_event","event":` + event + `,"session_id":"s","parent_tool_use_id":null,"uuid":"e"}`)
			}
			streamed(`{"type":"message_start","message":{"id":"m"}}`)
			streamed(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
			stamp(n, pace, func(now string) {
				streamed(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + now + `"}}`)
			})
			streamed(`{"type":"content_block_stop","index":0}`)
			streamed(`{"type":"message_stop"}`)
			fmt.Println(`{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s"}`)
		}
	}
}

// stamp writes n times, pace apart; what is overdue is written at once.
func stamp(n int, pace time.Duration, write func(now string)) {
	began := time.Now()
	for i := range n {
		if wait := time.Until(began.Add(time.Duration(i+1) * pace)); wait > 0 {
			t := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&t, nil) // the runtime's timers know whole milliseconds only
		}
		write(strconv.FormatInt(time.Now().UnixMicro(), 10))
	}
}

// stampServer is the part of opencode's server that a turn needs.
func stampServer(n int, pace time.Duration) {
	prompts := make(chan string, 1)
	mux := http.NewServeMux()
	answer := func(pattern, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
	}
	answer("GET /agent", `[{"name":"build"},{"name":"plan"}]`)
	answer("POST /session", `{"id":"ses_1"}`)
	mux.HandleFunc("POST /session/{id}/prompt_async", func(w http.ResponseWriter, r *http.Request) {
		var p struct{ MessageID string }
		_ = json.NewDecoder(r.Body).Decode(&p)
		prompts <- p.MessageID
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, r *http.Request) {
		line := func(typ, props string) {
			fmt.Fprintf(w, "data: {\"id\":\"e\",\"type\":%q,\"properties\":%s}\n\n", typ, props)
			w.(http.Flusher).Flush()
		}
		line("server.connected", "{}")
		for {
			var prompt string
			select {
			case prompt = <-prompts:
			case <-r.Context().Done():
				return
			}
			id := prompt + "a"
			said := `{"sessionID":"ses_1","info":{"id":"` + id + `","parentID":"` + prompt + `","role":"assistant","sessionID":"ses_1","finish":"stop"%s}}`
			text := `{"sessionID":"ses_1","part":{"id":"p` + id + `","messageID":"` + id + `","sessionID":"ses_1","type":"text","text":""%s}}`
			line("message.updated", `{"sessionID":"ses_1","info":{"id":"`+prompt+`","role":"user","sessionID":"ses_1"}}`)
			line("message.updated", fmt.Sprintf(said, ""))
			line("message.part.updated", fmt.Sprintf(text, ""))
			stamp(n, pace, func(now string) {
				line("message.part.delta", `{"sessionID":"ses_1","messageID":"`+id+`","partID":"p`+id+`","field":"text","delta":"`+now+`"}`)
			})
			line("message.part.updated", fmt.Sprintf(text, `,"time":{"end":1}`))
			line("message.updated", fmt.Sprintf(said, `,"time":{"completed":1}`))
			line("session.idle", `{"sessionID":"ses_1"}`)
		}
	})
	web := httptest.NewServer(mux)
	fmt.Println("opencode server listening on " + web.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestProviderLatency(t *testing.T) {
	for _, name := range []string{"codex", "claude", "opencode"} {
		latency(t, name, "median", 2*time.Millisecond, short(100, 1000), "a stand-in CLI writes 500 deltas a second, as the fastest models make it, each with the time of its writing; includes the pipe (opencode: the loopback connection) and the wake-up of this process")
	}
}

// latency measures a driver on a stand-in for its CLI that writes n deltas, pace apart.
func latency(t *testing.T, name, row string, pace time.Duration, n int, note string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "cli")
	text := "#!/bin/sh\ncase \"$1\" in sandbox) exit 0;; esac\nexec '" + os.Args[0] + "' -test.run='^TestStampProcess$'\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	p := map[string]provider.Provider{
		"codex": codex.New(script), "claude": claude.New(claude.Config{Binary: script}), "opencode": opencode.New(opencode.Config{Binary: script}),
	}[name]
	s := openSession(t, p, provider.SessionConfig{Dir: t.TempDir(), Data: t.TempDir(), Settings: event.Settings{Profile: thole.ProfileFull},
		Env: map[string]string{stampVar: name + ":" + strconv.Itoa(n) + ":" + pace.String()}})
	Case{
		Name: name + " driver: from the CLI's stdout to our event, " + row, Unit: "ms", Peer: "one millisecond",
		Promise: 1, Loose: 5,
		Ours: func() float64 {
			var waits []float64
			turnOf(t, s, "go", func(e event.Event) {
				if e.Kind == event.ItemDelta {
					sent, _ := strconv.ParseFloat(e.Delta, 64)
					waits = append(waits, (float64(time.Now().UnixMicro())-sent)/1e3)
				}
			})
			return middle(waits)
		},
		Theirs: func() float64 { return 1 },
		Note:   note + fmt.Sprintf("; a delta every %v", pace.Round(time.Microsecond)),
	}.Run(t)
}
