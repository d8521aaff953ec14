package modelsim

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// overAll runs a test on every API, streamed and plain.
func overAll(t *testing.T, fn func(t *testing.T, api string, stream bool)) {
	for _, api := range allAPIs {
		t.Run(api+"/stream", func(t *testing.T) { fn(t, api, true) })
		t.Run(api+"/plain", func(t *testing.T) { fn(t, api, false) })
	}
}

func TestAScriptIsFollowedByTheHistoryAlone(t *testing.T) {
	overAll(t, func(t *testing.T, api string, stream bool) {
		prompt := message{role: "user", text: "please\nsim: think hm ;; say Look, it is a longer text. ;; run date ;; and run pwd ;; say Saw %tool% for %user%"}
		s := Start(t)
		one := s.request(t, api, offeredBy[api], stream, prompt)
		if one.text != "Look, it is a longer text." || one.reasoning != "hm" || len(one.calls) != 2 || !one.whole {
			t.Fatalf("first answer %+v", one)
		}
		runTool := map[string]string{apiMessages: "Bash", apiChat: "bash", apiResponses: "exec_command"}[api]
		for i, want := range []string{"date", "pwd"} {
			if one.calls[i].Name != runTool || !strings.Contains(one.calls[i].Input, `"`+want+`"`) {
				t.Errorf("call %d is %+v", i, one.calls[i])
			}
		}
		// Another process of the model continues from the history.
		other := Start(t)
		two := other.request(t, api, offeredBy[api], stream, prompt, message{role: "assistant", calls: one.calls}, message{role: "tool", text: "noon"})
		if two.text != "Saw noon for please" || len(two.calls) != 0 {
			t.Fatalf("second answer %+v", two)
		}
		three := other.request(t, api, offeredBy[api], stream, prompt, message{role: "assistant", calls: one.calls}, message{role: "tool", text: "noon"},
			message{role: "assistant", text: two.text}, message{role: "user", text: "and now?"})
		if three.text != "You said: and now?" {
			t.Fatalf("the plain prompt after the script got %q", three.text)
		}
	})
}

func TestCallsOfOneResponseAreOneTurn(t *testing.T) {
	s := Start(t)
	prompt := message{role: "user", text: "sim: run a ;; and run b ;; say end"}
	for _, api := range allAPIs {
		one := s.request(t, api, offeredBy[api], true, prompt)
		two := s.request(t, api, offeredBy[api], true, prompt,
			message{role: "assistant", calls: one.calls[:1]}, message{role: "tool", text: "A"},
			message{role: "assistant", calls: one.calls[1:]}, message{role: "tool", text: "B"})
		if two.text != "end" {
			t.Errorf("%s: results between the calls moved the script to %q", api, two.text)
		}
	}
}

func TestASteerInTheToolLoopKeepsTheScript(t *testing.T) {
	s := Start(t)
	prompt := message{role: "user", text: "sim: run a ;; run b ;; say end"}
	for _, api := range allAPIs {
		one := s.request(t, api, offeredBy[api], true, prompt)
		history := []message{prompt, {role: "assistant", calls: one.calls}, {role: "tool", text: "A"}}
		two := s.request(t, api, offeredBy[api], true, append(history, message{role: "user", text: "hurry"})...)
		if len(two.calls) != 1 || !strings.Contains(two.calls[0].Input, `"b"`) {
			t.Errorf("%s: after a steer: %+v", api, two)
		}
		three := s.request(t, api, offeredBy[api], true, append(history,
			message{role: "user", text: "[Request interrupted by user]"}, message{role: "user", text: "new wish"})...)
		if three.text != "You said: new wish" {
			t.Errorf("%s: after an interrupt: %+v", api, three)
		}
	}
}

// The shapes are claude's: what nobody answered is joined into one message, and a
// message that steers is sent inside the result of a tool.
func TestClaudeJoinsMessages(t *testing.T) {
	const opening = "The user sent a new message while you were working:\n"
	user := func(blocks ...any) map[string]any { return map[string]any{"role": "user", "content": blocks} }
	text := func(s string) any { return map[string]any{"type": "text", "text": s} }
	call := map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": "toolu_sim1xa", "name": "Bash"}}}
	result := func(content any) any {
		return map[string]any{"type": "tool_result", "tool_use_id": "toolu_sim1xa", "content": content}
	}
	for name, c := range map[string]struct {
		history []any
		want    string
	}{
		"unanswered":       {[]any{user(text("sim: http 500 boom"), text("sim: say next"))}, "next"},
		"plain after":      {[]any{user(text("sim: say first"), text("and then?"))}, "You said: and then?"},
		"reminder is none": {[]any{user(text("sim: say first"), text("<system-reminder>sim: say never</system-reminder>"))}, "first"},
		"interrupted": {[]any{user(text("sim: run a ;; say old")), call,
			user(result("aborted"), text("[Request interrupted by user for tool use]"), text("go on"))}, "You said: go on"},
		"steered": {[]any{user(text("sim: run a ;; say old")), call,
			user(result("out\n\n<system-reminder>\n" + opening + "sim: say new\n\nIMPORTANT: address it.\n</system-reminder>\n<system-reminder>more</system-reminder>"))}, "new"},
		"steered without a tag": {[]any{user(text("sim: run a ;; say old")), call,
			user(result([]any{text("out"), text(opening + "a\n\nb\nsim: say newer %user%\n\nThis is how it goes.")}))}, "newer a\n\nb"},
		"steered twice": {[]any{user(text("sim: run a ;; say old")), call,
			user(result("out" + opening + "sim: say one\n\nAdvice.\n" + opening + "sim: say two\n\nAdvice."))}, "two"},
		"a plain steer keeps the script": {[]any{user(text("sim: run a ;; say got %tool%")), call,
			user(result("out\n\n<system-reminder>" + opening + "hurry\n\nAdvice.</system-reminder>"))}, "got out"},
	} {
		body := map[string]any{"model": "m", "messages": c.history, "tools": []any{map[string]any{"name": "Bash"}}}
		conv, err := decode(apiMessages, encode(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Sim{}).pick(conv).step.Text; got != c.want {
			t.Errorf("%s: answered %q, want %q", name, got, c.want)
		}
	}
}

func TestEveryVerbFindsItsTool(t *testing.T) {
	for _, tc := range []struct {
		directive string
		want      map[string]string // API to tool and part of the input
	}{
		{"write a.txt hi", map[string]string{apiMessages: `Write "/work/a.txt"`, apiChat: `write "/work/a.txt"`, apiResponses: `apply_patch *** Add File: a.txt`}},
		{"edit a.txt old => new", map[string]string{apiMessages: `Edit "old_string":"old"`, apiChat: `edit "newString":"new"`, apiResponses: `apply_patch -old`}},
		{"read a.txt", map[string]string{apiMessages: `Read "/work/a.txt"`, apiChat: `read "/work/a.txt"`, apiResponses: `exec_command cat -- `}},
		{"todo [x] A | [~] B | C", map[string]string{apiMessages: `TodoWrite "status":"in_progress"`, apiChat: `todowrite "content":"C"`, apiResponses: `update_plan "status":"completed","step":"A"`}},
		{"ask Which? | red | blue", map[string]string{apiMessages: `AskUserQuestion "label":"red"`, apiChat: `question "question":"Which?"`, apiResponses: `request_user_input "label":"blue"`}},
		{"agent look", map[string]string{apiMessages: `Agent "prompt":"look"`, apiChat: `task "prompt":"look"`}},
		{`call Odd {"a":1}`, map[string]string{apiMessages: `Odd {"a":1}`, apiChat: `Odd {"a":1}`, apiResponses: `Odd {"a":1}`}},
		{"escalate rm x", map[string]string{apiMessages: `Bash "rm x"`, apiChat: `bash "rm x"`, apiResponses: `exec_command require_escalated`}},
	} {
		s := Start(t)
		for _, api := range allAPIs {
			got := s.request(t, api, offeredBy[api], true, message{role: "user", text: "sim: " + tc.directive})
			want, possible := tc.want[api]
			if !possible {
				if len(got.calls) != 0 || !strings.Contains(got.text, "no tool is offered") {
					t.Errorf("%s on %s: want words, got %+v", tc.directive, api, got)
				}
				continue
			}
			name, part, _ := strings.Cut(want, " ")
			if len(got.calls) != 1 || got.calls[0].Name != name || !strings.Contains(got.calls[0].Input, part) {
				t.Errorf("%s on %s: want %s, got %+v", tc.directive, api, want, got)
			}
			if name != "apply_patch" && !json.Valid([]byte(got.calls[0].Input)) {
				t.Errorf("%s on %s: input is not JSON: %s", tc.directive, api, got.calls[0].Input)
			}
		}
	}
}

func TestTaskToolsStandInForATodoList(t *testing.T) {
	got := Start(t).request(t, apiMessages, []string{"TaskCreate"}, true, message{role: "user", text: "sim: todo A | B"})
	if len(got.calls) != 2 || got.calls[1].Name != "TaskCreate" || !strings.Contains(got.calls[1].Input, `"subject":"B"`) {
		t.Fatalf("%+v", got)
	}
}

func TestUsageAndStop(t *testing.T) {
	overAll(t, func(t *testing.T, api string, stream bool) {
		s := Start(t)
		got := s.request(t, api, offeredBy[api], stream, message{role: "user", text: "sim: usage in=10 cached=5 cachewrite=1 out=7 reasoning=2 ;; stop max_tokens ;; say x"})
		wantIn := map[string]float64{apiMessages: 10, apiChat: 16, apiResponses: 16}[api]
		wantStop := map[string]string{apiMessages: "max_tokens", apiChat: "length", apiResponses: "max_output_tokens"}[api]
		if stream && (got.input != wantIn || got.output != 9 || got.stop != wantStop) {
			t.Errorf("%+v", got)
		}
	})
}

func TestHTTPFaultHappensSoManyTimes(t *testing.T) {
	overAll(t, func(t *testing.T, api string, stream bool) {
		s := Start(t)
		prompt := message{role: "user", text: "sim: http 429 x2 retry-after=3 slow down ;; say fine"}
		for range 2 {
			got := s.request(t, api, offeredBy[api], stream, prompt)
			if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "3" || !strings.Contains(got.body, "slow down") || !strings.Contains(got.body, "rate_limit_error") {
				t.Fatalf("%+v", got)
			}
		}
		if got := s.request(t, api, offeredBy[api], stream, prompt); got.text != "fine" {
			t.Fatalf("%+v", got)
		}
	})
}

func TestFaultsInMidStream(t *testing.T) {
	const text = "a text that is long enough to be sent in more than one piece, so that it has a middle"
	for _, api := range allAPIs {
		s := Start(t)
		cut := s.request(t, api, offeredBy[api], true, message{role: "user", text: "sim: cut ;; say " + text})
		if cut.whole || cut.text == "" || cut.text == text {
			t.Errorf("%s: cut gave %+v", api, cut)
		}
		fail := s.request(t, api, offeredBy[api], true, message{role: "user", text: "sim: fail overloaded_error Overloaded ;; say " + text})
		if fail.whole || fail.failed != "overloaded_error" || fail.text == "" {
			t.Errorf("%s: fail gave %+v", api, fail)
		}
		pause := s.request(t, api, offeredBy[api], true, message{role: "user", text: "sim: hang 20ms ;; say " + text})
		if !pause.whole || pause.text != text {
			t.Errorf("%s: a short hang gave %+v", api, pause)
		}
	}
}

func TestCloseEndsAHungAnswer(t *testing.T) {
	s := Start(t)
	done := make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		body := `{"stream":true,"messages":[{"role":"user","content":"sim: hang ;; say never to be finished"}]}`
		resp, err := client.Post(s.URL()+"/v1/messages", "application/json", strings.NewReader(body))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		done <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := s.Await(ctx, func(r Request) bool { return r.Kind == KindScript }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Fatal("the answer came to a proper end")
	}
}

func TestSideRequestsGetATitle(t *testing.T) {
	s := Start(t)
	for _, api := range allAPIs {
		got := s.request(t, api, nil, true, message{role: "user", text: "fix the broken oar of the boat today\nsim: run rm -rf x"})
		if got.text != "fix the broken oar of the" || len(got.calls) != 0 {
			t.Errorf("%s: %+v", api, got)
		}
	}
	if turns := s.Turns(); len(turns) != 0 {
		t.Errorf("side requests count as turns: %v", turns)
	}
}

// Codex offers its newest models their tools as an item of the input: that is no side
// request.
func TestToolsInTheInput(t *testing.T) {
	c, err := decodeResponses([]byte(`{"model":"m","input":[
		{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},
		{"type":"message","role":"developer","content":"be brief"},
		{"type":"message","role":"user","content":"sim: say rowing"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := Start(t).pick(c); got.kind != KindScript || got.step.Text != "rowing" {
		t.Errorf("%+v", got)
	}
}

func TestPlainWishes(t *testing.T) {
	s := Start(t, Options{Demo: true})
	for prompt, tool := range map[string]string{
		"run `ls -la`": "Bash", "write a file notes.txt with hello": "Write", "plan the trip": "TodoWrite", "ask me something": "AskUserQuestion",
	} {
		got := s.request(t, apiMessages, offeredBy[apiMessages], true, message{role: "user", text: prompt})
		if len(got.calls) != 1 || got.calls[0].Name != tool {
			t.Errorf("%s: %+v", prompt, got)
		}
	}
	if got := s.request(t, apiMessages, offeredBy[apiMessages], true, message{role: "user", text: "hello"}); !strings.HasPrefix(got.text, "You said: hello\n") {
		t.Errorf("%+v", got)
	}
}

// In the sample repository a model says what to try, and mends it when it is asked to.
func TestWishesInTheSample(t *testing.T) {
	s := Start(t, Options{Demo: true, Sample: true})
	if got := s.request(t, apiMessages, offeredBy[apiMessages], true, message{role: "user", text: "hello"}); !strings.Contains(got.text, "`fix the greeting`") || strings.Contains(got.text, "You said") {
		t.Errorf("%+v", got)
	}
	got := s.request(t, apiMessages, offeredBy[apiMessages], true, message{role: "user", text: "Fix the greeting"})
	if len(got.calls) != 1 || got.calls[0].Name != "Bash" {
		t.Errorf("%+v", got)
	}
}

func TestNamedAndDefaultScripts(t *testing.T) {
	scripts, err := ParseScripts([]byte(`{"one":{"text":"named"},"two":{"steps":[{"calls":[{"verb":"run","command":"x"}]},{"text":"b"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := Start(t, Options{Scripts: scripts, Default: &Script{Steps: []Step{{Text: "default"}}}})
	for prompt, want := range map[string]string{
		"sim: script one":            "named",
		"hello":                      "default",
		"sim: script none":           `cannot read the directives: no script named "none"`,
		`sim: {"text":"inline"}`:     "inline",
		`sim: {"txt":"inline"}`:      `cannot read the directives: read script: json: unknown field "txt"`,
		"sim: frobnicate":            `cannot read the directives: unknown directive "frobnicate"`,
		`"sim: say quoted"`:          "quoted",
		"a simile, and sim: say mid": "mid",
	} {
		if got := s.request(t, apiChat, offeredBy[apiChat], true, message{role: "user", text: prompt}); got.text != want {
			t.Errorf("%s: got %q, want %q", prompt, got.text, want)
		}
	}
}

func TestRequestsAreRecorded(t *testing.T) {
	s := Start(t)
	s.request(t, apiResponses, offeredBy[apiResponses], true, message{role: "user", text: "sim: say x"})
	got := s.Requests()
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	r := got[0]
	if diff := cmp.Diff([]string{"apply_patch", "exec_command", "request_user_input", "update_plan"}, r.Tools); diff != "" {
		t.Error(diff)
	}
	if r.API != apiResponses || r.Kind != KindScript || r.Model != "m" || r.Path != "/v1/responses" || !strings.Contains(string(r.Body), "sim: say x") {
		t.Errorf("%+v", r)
	}
	if n := s.Conversations()[r.Conversation]; n != 1 {
		t.Errorf("the conversation has %d turns", n)
	}
}
