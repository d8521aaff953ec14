package modelsim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzDecode feeds request bodies to the whole server but its socket: whatever
// comes, it answers with JSON or an event stream and does not break.
func FuzzDecode(f *testing.F) {
	for i, api := range allAPIs {
		for _, text := range []string{"hello", "sim: think a ;; run ls ;; and ask Q? | a | b ;; todo [x] a ;; say %tool%", "sim: {\"text\":1}", "sim: http 999"} {
			for _, stream := range []bool{true, false} {
				_, body := requestBody(api, offeredBy[api], stream, []message{{role: "user", text: text}, {role: "assistant", calls: []toolUse{{ID: "call_sim1xa"}}}, {role: "tool", text: "r"}})
				data, _ := json.Marshal(body)
				f.Add(i, data)
			}
		}
	}
	f.Add(0, []byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"text":"x"}]}]}],"tools":[{}]}`))
	f.Add(2, []byte(`{"input":"just text","tools":[{"type":"custom","name":"apply_patch"}]}`))
	paths := []string{"/v1/messages", "/v1/chat/completions", "/v1/responses"}
	f.Fuzz(func(t *testing.T, api int, body []byte) {
		if bytes.Contains(body, []byte("wait")) || bytes.Contains(body, []byte("slow")) || bytes.Contains(body, []byte("hang")) || bytes.Contains(body, []byte("_ms")) {
			t.Skip("asks for a pause")
		}
		s := New(Options{})
		defer s.cancel()
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler {
					panic(p)
				}
			}()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, paths[((api%3)+3)%3], bytes.NewReader(body)))
		}()
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("answered %q", w.Body.String())
		}
	})
}

// FuzzDirectives checks that a prompt never breaks the reader and that a script
// read from it has content in every step.
func FuzzDirectives(f *testing.F) {
	for _, p := range []string{"sim: say a ;; run b ;; and run c ;; then ;; say d", "sim: slow 5ms 3 ;; usage in=1 ;; cut x2", "x sim: edit p a => b", "sim: call X {}", "sim:", "\"sim: say\""} {
		f.Add(p)
	}
	s := New(Options{})
	f.Fuzz(func(t *testing.T, prompt string) {
		found, _ := directives(prompt)
		script, err := s.compile(found)
		if err == nil && len(script.Steps) > len(found)+bytes.Count([]byte(prompt), []byte("{")) {
			t.Fatalf("%d directives gave %d steps", len(found), len(script.Steps))
		}
	})
}
