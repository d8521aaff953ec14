package codex

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/commandline"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
	"github.com/tholehq/thole/protocol/app"
)

const testTurn = thole.TurnID("01a1dd41-0000-7000-8000-000000000001")

// replay feeds what a real codex 0.166.0 wrote to its stdout during one turn on
// the scripted model to a decoder. Asks are emitted and left unanswered. Paths were
// replaced and unrelated notifications left out; the last line of plan.jsonl was
// added by hand, in the shape of the other files, because the recording lost it.
func replay(t testing.TB, name string) (providertest.Record, []event.Ask) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return decode(data)
}

func decode(data []byte) (providertest.Record, []event.Ask) {
	var record providertest.Record
	var asks []event.Ask
	em := provider.NewEmitter(testTurn, func(e event.Event) { record = append(record, e) })
	d := newDecoder(em, "", "/workspace")
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		m, err := jsonrpc.Decode(in.Bytes(), jsonrpc.Limits{})
		if err != nil {
			continue
		}
		switch m.Kind {
		case jsonrpc.KindResponse:
			var r struct {
				Thread struct{ ID string }
				Turn   struct{ ID string }
				Model  string
			}
			_ = json.Unmarshal(m.Result, &r)
			if r.Thread.ID != "" {
				d.thread, d.model = r.Thread.ID, r.Model
			}
			if r.Turn.ID != "" {
				d.turn = r.Turn.ID
			}
		case jsonrpc.KindRequest:
			if p, ok := d.newAsk(m.ID.String(), m.Method, m.Params); ok {
				asks = append(asks, p.ask)
				em.Ask(p.ask)
				em.Resolve(p.ask.ID, nil)
			}
		case jsonrpc.KindNotification:
			if wants(m.Method) {
				if ended := d.notification(m.Method, m.Params); ended != nil {
					em.End(*ended)
				}
			}
		}
	}
	return record, asks
}

func TestTranscripts(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, r providertest.Record, asks []event.Ask){
		"say": func(t *testing.T, r providertest.Record, _ []event.Ask) {
			if got := r.Text(); got != "one two three" {
				t.Errorf("text %q", got)
			}
			if i := r.Items(event.ItemReasoning); len(i) != 1 || i[0].Text+i[0].Summary != "weigh it" {
				t.Errorf("reasoning %+v", i)
			}
			want := thole.Usage{Input: 100, CacheRead: 20, Output: 30, Reasoning: 5, ContextWindow: 258400, Model: "sim-1",
				Last: &thole.Tokens{Input: 100, CacheRead: 20, Output: 30, Reasoning: 5}}
			if diff := cmp.Diff(want, r.Usage()); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		},
		"tools": func(t *testing.T, r providertest.Record, _ []event.Ask) {
			c := r.Items(event.ItemCommand)
			if len(c) != 1 || c[0].Command.Line != "echo hello && exit 3" || c[0].Command.Output != "hello\n" || *c[0].Command.ExitCode != 3 || c[0].State != event.StateFailed {
				t.Errorf("commands %+v", c)
			}
			f := r.Items(event.ItemFileChange)
			if len(f) != 2 || f[0].Changes[0] != (event.FileChange{Path: "notes.txt", Kind: "add", Diff: "+first line\n"}) {
				t.Errorf("file changes %+v", f)
			} else if d := f[1].Changes[0]; d.Kind != "update" || !strings.Contains(d.Diff, "-first line\n+second line") {
				t.Errorf("change %+v", d)
			}
			todos := r.Of(event.TodoSnapshot)
			if len(todos) != 1 || todos[0].Todos[1] != (event.Todo{ID: "2", Content: "write", State: event.TodoDoing, Order: 1}) {
				t.Errorf("todos %+v", todos)
			}
			if n := len(r.Of(event.StepStarted)); n != 4 {
				t.Errorf("%d steps with something to show, want 4", n)
			}
		},
		"approve": func(t *testing.T, r providertest.Record, asks []event.Ask) {
			if len(asks) != 1 || asks[0].Kind != event.AskCommand || asks[0].Command != "touch made" || asks[0].Dir != "/workspace" {
				t.Fatalf("asks %+v", asks)
			}
			if c := r.Items(event.ItemCommand); len(c) != 1 || c[0].ID != asks[0].Item {
				t.Errorf("the ask is about %s, the commands are %+v", asks[0].Item, c)
			}
		},
		"question": func(t *testing.T, r providertest.Record, asks []event.Ask) {
			if len(asks) != 1 || asks[0].Kind != event.AskInput || len(asks[0].Questions) != 1 {
				t.Fatalf("asks %+v", asks)
			}
			q := asks[0].Questions[0]
			if q.Text != "Which colour?" || len(q.Options) != 2 || q.Options[1].Label != "green" || !q.Free || q.Multi {
				t.Errorf("question %+v", q)
			}
			if !strings.Contains(r.Text(), "green") {
				t.Errorf("text %q", r.Text())
			}
		},
		"steer": func(t *testing.T, r providertest.Record, _ []event.Ask) {
			s := r.Of(event.SteerTaken)
			if len(s) != 1 || s[0].Item.ClientID != "client-7" || s[0].Item.Content[0].Text != "sim: say new way" {
				t.Errorf("steered %+v", s)
			}
			if !strings.Contains(r.Text(), "new way") {
				t.Errorf("text %q", r.Text())
			}
		},
		"cut": func(t *testing.T, r providertest.Record, _ []event.Ask) {
			if got := r.Text(); got != "this text is told once and whole" {
				t.Errorf("text %q", got)
			}
			if len(r.Of(event.StepReset)) != 1 {
				t.Error("no reset")
			}
			if e := r.Of(event.ErrorReported); len(e) != 1 || !e[0].Error.Retrying || e[0].Error.Code != thole.ErrNetwork {
				t.Errorf("errors %+v", e)
			}
		},
		"unauthorized": func(t *testing.T, r providertest.Record, _ []event.Ask) {
			if e := r.Error(); r.Outcome() != thole.OutcomeFailed || e.Code != thole.ErrAuth || e.Status != 401 {
				t.Errorf("outcome %s, error %+v", r.Outcome(), e)
			}
		},
		"plan": func(t *testing.T, r providertest.Record, _ []event.Ask) {
			if p := r.Items(event.ItemPlan); len(p) != 1 || p[0].Text != "1. read\n2. write\n" {
				t.Errorf("plans %+v", p)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, asks := replay(t, name)
			if err := providertest.Check(testTurn, r); err != nil {
				t.Fatalf("%v\n%s", err, r)
			}
			check(t, r, asks)
			if t.Failed() {
				t.Logf("events:\n%s", r)
			}
			// The same bytes give the same ids, so that a replay is recognised.
			again, _ := replay(t, name)
			for i := range r {
				if r[i].ID != again[i].ID {
					t.Fatalf("event %d has another id in a second reading", i)
				}
			}
		})
	}
}

// When a call fails codex reports the totals of an earlier call again: the step goes
// on, so that a reset can still take back what it has shown.
func TestTotalsToldAgain(t *testing.T) {
	var r providertest.Record
	d := newDecoder(provider.NewEmitter(testTurn, func(e event.Event) { r = append(r, e) }), "t", "/workspace")
	d.turn, d.totals = "u", &app.TokenUsage{InputTokens: 10, OutputTokens: 5}
	d.started(&wireItem{Item: app.Item{Type: "agentMessage", ID: "i"}})
	d.usage(&app.ThreadUsage{Total: app.TokenUsage{InputTokens: 10, OutputTokens: 5}, Last: app.TokenUsage{InputTokens: 10, OutputTokens: 5}})
	d.error(&app.TurnError{Message: "stream disconnected"}, true)
	d.usage(&app.ThreadUsage{Total: app.TokenUsage{InputTokens: 22, OutputTokens: 12}, Last: app.TokenUsage{InputTokens: 12, OutputTokens: 7}})
	if u := r.Usage(); u.Input != 12 || u.Output != 7 || len(r.Of(event.UsageUpdated)) != 1 || len(r.Of(event.StepReset)) != 1 {
		t.Errorf("events:\n%s", r)
	}
}

// Whatever a CLI writes, the decoder neither panics nor breaks the port's
// promises, once the turn is ended.
func FuzzDecoder(f *testing.F) {
	names, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range names {
		if strings.HasSuffix(n.Name(), ".jsonl") {
			data, err := os.ReadFile("testdata/" + n.Name())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append(data, "\n"+`{"method":"turn/completed","params":{"turn":{"id":"","status":"completed"}}}`...)
		r, _ := decode(data)
		if len(r) > 0 && r[len(r)-1].Kind == event.TurnEnded {
			if err := providertest.Check(testTurn, r); err != nil && !strings.Contains(err.Error(), "sum of its deltas") {
				t.Fatalf("%v\n%s", err, r)
			}
		}
	})
}

func TestCommandLines(t *testing.T) {
	for said, want := range map[string]string{
		`/bin/bash -lc 'echo hi'`:         `echo hi`,
		`/bin/bash -lc "echo \"a\" $x"`:   `echo "a" $x`,
		`bash -lc ls`:                     `ls`,
		`/bin/bash -lc 'it'"'"'s'`:        `it's`,
		`/bin/bash -lc 'open`:             `/bin/bash -lc 'open`,
		`/bin/bash -lc 'a' extra`:         `/bin/bash -lc 'a' extra`,
		`python3 -c 'print(1)'`:           `python3 -c 'print(1)'`,
		`/usr/bin/bash -c 'touch a\ b.c'`: `touch a\ b.c`,
	} {
		got, argv := line(said)
		if got != want {
			t.Errorf("line(%q) = %q, want %q", said, got, want)
		}
		if argv == "" {
			argv = commandline.Shell(got)
		}
		if argv != said {
			t.Errorf("%q became %q", said, argv)
		}
	}
}

func TestFailureCodes(t *testing.T) {
	for _, c := range []struct {
		info, text string
		code       thole.ErrorCode
		status     int
	}{
		{`"contextWindowExceeded"`, "too long", thole.ErrContextTooLong, 0},
		{`"usageLimitExceeded"`, "limit", thole.ErrRateLimit, 0},
		{`"serverOverloaded"`, "busy", thole.ErrOverloaded, 0},
		{`"unauthorized"`, "no", thole.ErrAuth, 0},
		{`"other"`, "unexpected status 401 Unauthorized: bad key", thole.ErrAuth, 401},
		{`"other"`, "unexpected status 404 Not Found: model", thole.ErrBadRequest, 404},
		{`{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`, "exceeded retry limit", thole.ErrRateLimit, 429},
		{`{"responseTooManyFailedAttempts":{"httpStatusCode":500}}`, "exceeded retry limit", thole.ErrOverloaded, 500},
		{`{"responseStreamDisconnected":{"httpStatusCode":null}}`, "stream disconnected", thole.ErrNetwork, 0},
		{`{"httpConnectionFailed":{"httpStatusCode":null}}`, "no route", thole.ErrNetwork, 0},
		{`"sandboxError"`, "denied", thole.ErrToolFailed, 0},
		{`null`, "something nobody has seen", thole.ErrProviderCrashed, 0},
		{`{"newKind":{}}`, "rate limit reached", thole.ErrRateLimit, 0},
	} {
		got := failure(&app.TurnError{Message: c.text, Info: json.RawMessage(c.info)})
		if got.Code != c.code || got.Status != c.status || got.Hint == "" {
			t.Errorf("%s %q: %+v, want %s with status %d", c.info, c.text, got, c.code, c.status)
		}
	}
}

func TestModes(t *testing.T) {
	change := []event.FileChange{{Path: "a/b"}}
	outside := []event.FileChange{{Path: "/etc/passwd"}}
	for _, c := range []struct {
		profile               thole.Profile
		guarded               bool
		approval, sandbox     string
		command, edit, escape event.Decision
	}{
		{"plan", false, "never", "readOnly", "deny", "deny", "deny"},
		{"plan", true, "untrusted", "dangerFullAccess", "deny", "deny", "deny"},
		{"never/read-only", true, "untrusted", "dangerFullAccess", "deny", "deny", "deny"},
		{"on-request/read-only", true, "untrusted", "dangerFullAccess", "", "", ""},
		{"ask", false, "untrusted", "workspaceWrite", "", "", ""},
		{"ask", true, "untrusted", "dangerFullAccess", "", "", ""},
		{"", false, "untrusted", "workspaceWrite", "", "", ""},
		{"edit", false, "on-request", "workspaceWrite", "", "", ""},
		{"edit", true, "untrusted", "dangerFullAccess", "", "allow", ""},
		{"never/workspace-write", true, "untrusted", "dangerFullAccess", "deny", "allow", "deny"},
		{"full", false, "never", "dangerFullAccess", "", "", ""},
		{"full", true, "never", "dangerFullAccess", "", "", ""},
		{"read-only", false, "on-request", "readOnly", "", "", ""},
		{"untrusted", false, "untrusted", "workspaceWrite", "", "", ""},
	} {
		m, err := parseMode(c.profile)
		if err != nil {
			t.Errorf("%q: %v", c.profile, err)
			continue
		}
		if c.guarded {
			m = m.guard()
		}
		approval, policy := m.wire()
		got := []string{approval, policy.Type, string(m.verdict(event.AskCommand, nil)), string(m.verdict(event.AskFileChange, change)), string(m.verdict(event.AskFileChange, outside))}
		want := []string{c.approval, c.sandbox, string(c.command), string(c.edit), string(c.escape)}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q guarded %v: %q, want %q", c.profile, c.guarded, got, want)
		}
		if m.verdict(event.AskInput, nil) != "" {
			t.Errorf("%q: a question is answered by the host", c.profile)
		}
	}
	if _, err := parseMode("never/elsewhere"); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("unknown sandbox: %v", err)
	}
}

// codex reports the limits after every call; only what changed is an event.
func TestLimits(t *testing.T) {
	var r providertest.Record
	d := newDecoder(provider.NewEmitter(testTurn, func(e event.Event) { r = append(r, e) }), "t", "/workspace")
	tell := func(params string) {
		if !wants("account/rateLimits/updated") || d.notification("account/rateLimits/updated", []byte(params)) != nil {
			t.Error("not taken")
		}
	}
	tell(`{"rateLimits":{"limitId":"codex","primary":null,"secondary":null}}`) // as without an account
	for range 2 {
		tell(`{"rateLimits":{"primary":{"usedPercent":82,"windowDurationMins":300,"resetsAt":1794790800},"secondary":{"usedPercent":3,"windowDurationMins":null,"resetsAt":null}}}`)
	}
	all := r.Of(event.LimitsUpdated)
	want := []event.Limit{{Name: "primary", Used: 82, Window: 300, Resets: time.Unix(1794790800, 0).UTC()}, {Name: "secondary", Used: 3}}
	if len(all) != 1 || !slices.Equal(all[0].Limits, want) {
		t.Fatalf("events:\n%s", r)
	}
	if !want[0].Near() || want[1].Near() || want[0].String() != "82% of the primary limit (5h0m0s) is used until 2026-11-16 01:00 UTC" {
		t.Errorf("%s, %v", want[0], want)
	}
}
