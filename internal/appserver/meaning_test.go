package appserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/testkit/appschema"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/protocol/app"
)

// Whatever form a log has a change in, of this version or an earlier one, it is sent as
// Codex sends it.
func TestChangesOfAnyLog(t *testing.T) {
	for stored, want := range map[event.FileChange]app.FileChange{
		{Path: "a", Kind: "add", Diff: "+one\n+two\n"}:                                                                       {Path: "/w/a", Kind: app.ChangeKind{Type: "add"}, Diff: "one\ntwo\n"},
		{Path: "a", Kind: "add", Diff: "+one\n\\ No newline at end of file\n"}:                                               {Path: "/w/a", Kind: app.ChangeKind{Type: "add"}, Diff: "one"},
		{Path: "a", Kind: "add", Diff: "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n++++ x\n+@@ y\n"}:                           {Path: "/w/a", Kind: app.ChangeKind{Type: "add"}, Diff: "+++ x\n@@ y\n"},
		{Path: "a", Kind: "add", Diff: ""}:                                                                                   {Path: "/w/a", Kind: app.ChangeKind{Type: "add"}},
		{Path: "/etc/a", Kind: "delete", Diff: "--- x\n--- y\n"}:                                                             {Path: "/etc/a", Kind: app.ChangeKind{Type: "delete"}, Diff: "-- x\n-- y\n"},
		{Path: "a", Kind: "delete", Diff: "--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n"}:                                   {Path: "/w/a", Kind: app.ChangeKind{Type: "delete"}, Diff: "x\n"},
		{Path: "a", Kind: "update", Diff: "--- a/a\n+++ b/a\n@@ -1,1 +1,2 @@ func x\n-x\n+y\n+z\n"}:                          {Path: "/w/a", Kind: app.ChangeKind{Type: "update"}, Diff: "@@ -1 +1,2 @@ func x\n-x\n+y\n+z\n"},
		{Path: "a", Kind: "update", Diff: "Index: /w/a\n=====\n--- /w/a\n+++ /w/a\n@@ -1,3 +1,3 @@\n a\n--- b\n+++ c\n d\n"}: {Path: "/w/a", Kind: app.ChangeKind{Type: "update"}, Diff: "@@ -1,3 +1,3 @@\n a\n--- b\n+++ c\n d\n"},
		{Path: "a", Kind: "update", Move: "b/c", Diff: "@@ -1 +1 @@\n-x\n+y\n"}:                                              {Path: "/w/a", Kind: app.ChangeKind{Type: "update", Move: new("/w/b/c")}, Diff: "@@ -1 +1 @@\n-x\n+y\n\n\nMoved to: /w/b/c"},
	} {
		if diff := cmp.Diff([]app.FileChange{want}, changes([]event.FileChange{stored}, "/w")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", stored, diff)
		}
	}
}

// sender is a translator of one turn's events.
type sender struct {
	t  *testing.T
	tr *translator
}

func newSender(t *testing.T) *sender {
	s := &fold.State{}
	s.Row.Thread.Files = thole.Source{Kind: thole.SourceEmpty}
	s.Follow(event.Event{Kind: event.TurnStarted, Thread: "th", Turn: "t", Data: event.Data{Input: thole.Text("x")}})
	return &sender{t, &translator{srv: &Server{}, state: s}}
}

// sent is the frames of an event: method, and what the item or change in it says.
func (x *sender) sent(k event.Kind, d event.Data) (out []string) {
	x.t.Helper()
	for _, f := range x.tr.frames([]event.Event{{Kind: k, Thread: "th", Turn: "t", Time: time.Unix(1, 0), Data: d}}) {
		var m struct {
			Params struct {
				Command string
				Changes []app.FileChange
				Item    app.Item
			}
		}
		if err := json.Unmarshal(f.plain.Bytes(), &m); err != nil {
			x.t.Fatal(err)
		}
		if !f.extension && strings.Contains(string(f.plain.Bytes()), `"thole"`) {
			x.t.Errorf("a member of the extension is for everybody: %s", f.plain.Bytes())
		}
		text := m.Params.Command
		if c := m.Params.Item.Command; c != nil {
			text = *c
		}
		for _, c := range append(m.Params.Changes, m.Params.Item.Changes...) {
			text += c.Path + ":" + c.Diff
		}
		out = append(out, strings.TrimSpace(f.method+" "+text))
	}
	return out
}

func (x *sender) expect(k event.Kind, d event.Data, want ...string) {
	x.t.Helper()
	if got := x.sent(k, d); !slices.Equal(got, want) {
		x.t.Errorf("%s sent %q, want %q", k, got, want)
	}
}

func ran(line string) event.Data {
	return event.Data{Item: &event.Item{ID: "i", Kind: event.ItemCommand, State: event.StateRunning, Command: &event.Command{Line: line}}}
}

func edited(diffs ...string) event.Data {
	i := event.Item{ID: "i", Kind: event.ItemFileChange, State: event.StateRunning}
	for _, d := range diffs {
		i.Changes = append(i.Changes, event.FileChange{Path: "f", Kind: "update", Diff: d})
	}
	return event.Data{Item: &i}
}

const hunk = "@@ -1 +1 @@\n-a\n+b\n"

// A command or an edit begins when it says what it does, once, and before it is asked for.
func TestWhatAnItemBeginsWith(t *testing.T) {
	command := event.Ask{ID: "a", Kind: event.AskCommand, Item: "i", Command: "ls", Dir: "/d"}
	files := event.Ask{ID: "a", Kind: event.AskFileChange, Item: "i", Changes: edited(hunk).Item.Changes}
	const lsStarted, lsAsked, lsDone = "item/started /bin/bash -lc ls", "item/commandExecution/requestApproval /bin/bash -lc ls", "item/completed /bin/bash -lc ls"
	const fileStarted, filePatched, fileAsked = "item/started /workspace/f:" + "@@ -1 +1 @@\n-a\n+b", "item/fileChange/patchUpdated /workspace/f:@@ -1 +1 @@\n-a\n+c", "item/fileChange/requestApproval"

	x := newSender(t) // as codex
	x.expect(event.ItemStarted, ran("ls"), lsStarted)
	x.expect(event.AskRequested, event.Data{Ask: &command}, lsAsked)
	x.expect(event.ItemCompleted, ran("ls"), lsDone)

	x = newSender(t) // as claude
	x.expect(event.ItemStarted, ran(""))
	x.expect(event.ItemDelta, event.Data{ItemID: "i", Stream: event.StreamOutput, Delta: "early"})
	x.expect(event.ItemUpdated, ran("ls"), lsStarted)
	x.expect(event.ItemDelta, event.Data{ItemID: "i", Stream: event.StreamOutput, Delta: "out"}, "item/commandExecution/outputDelta")
	x.expect(event.AskRequested, event.Data{Ask: &command}, lsAsked)
	x.expect(event.ItemCompleted, ran("ls"), lsDone)

	x = newSender(t) // an ask before its item says anything, or is there
	x.expect(event.ItemStarted, ran(""))
	x.expect(event.AskRequested, event.Data{Ask: &command}, lsStarted, lsAsked)
	x.expect(event.AskResolved, event.Data{AskID: "a", AskState: event.AskAnswered, Answer: &event.Answer{}}, "serverRequest/resolved")
	x.expect(event.ItemUpdated, ran("ls"), "thole/item/updated /bin/bash -lc ls")
	x.expect(event.ItemCompleted, ran("ls"), lsDone)
	x = newSender(t)
	x.expect(event.AskRequested, event.Data{Ask: &files}, fileStarted, fileAsked)
	x.expect(event.ItemStarted, edited())
	x.expect(event.ItemCompleted, edited(hunk), "item/completed /workspace/f:@@ -1 +1 @@\n-a\n+b")

	x = newSender(t) // edits that change while they are written
	x.expect(event.ItemStarted, edited(""))
	x.expect(event.ItemUpdated, edited(hunk), fileStarted)
	x.expect(event.ItemUpdated, edited("@@ -1 +1 @@\n-a\n+c\n"), filePatched, "thole/item/updated /workspace/f:@@ -1 +1 @@\n-a\n+c")
	x.expect(event.AskRequested, event.Data{Ask: &files}, fileAsked)

	x = newSender(t) // what never says anything begins with its end
	x.expect(event.ItemStarted, ran(""))
	x.expect(event.ItemCompleted, ran(""), "item/started /bin/bash -lc ''", "item/completed /bin/bash -lc ''")

	x = newSender(t) // a client that reads the log again
	x.tr.replay, x.tr.held = true, map[thole.ItemID]bool{}
	x.expect(event.ItemStarted, ran(""))
	x.expect(event.ItemUpdated, ran("ls"), lsStarted)
	x.expect(event.ItemCompleted, ran("ls"), lsDone)
	x.expect(event.ItemCompleted, event.Data{Item: &event.Item{ID: "old", Kind: event.ItemCommand, Command: &event.Command{Line: "ls"}}}, lsDone)

	x = newSender(t) // what an MCP server reports of its work
	x.expect(event.ItemStarted, event.Data{Item: &event.Item{ID: "i", Kind: event.ItemTool, Tool: &event.ToolCall{Name: "t", Server: "s"}}}, "item/started")
	x.expect(event.ItemDelta, event.Data{ItemID: "i", Stream: event.StreamOutput, Delta: "half\n"}, "item/mcpToolCall/progress")
}

// An ask goes out in a form that Codex's schema knows, without what belongs to its agent;
// the agent's own rule is what "always" means.
func TestFormsOfAsks(t *testing.T) {
	const secret = "addRules"
	rules := json.RawMessage(`[{"type":"` + secret + `","rules":[{"toolName":"Bash"}]}]`)
	every := []event.Decision{event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel}
	late := time.UnixMilli(61_000)
	for name, c := range map[string]struct {
		ask    event.Ask
		method string
		shows  []string
	}{
		"claude's command":     {event.Ask{Kind: event.AskCommand, Command: "ls", Amendment: rules, Decisions: every}, "item/commandExecution/requestApproval", []string{`"/bin/bash -lc ls"`, `"accept","acceptForSession","decline","cancel"`}},
		"codex's command":      {event.Ask{Kind: event.AskCommand, Command: "ls", Amendment: json.RawMessage(`["ls"]`), Decisions: every}, "item/commandExecution/requestApproval", []string{`"proposedExecpolicyAmendment":["ls"]`, `{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["ls"]}}`}},
		"codex's own shell":    {event.Ask{Kind: event.AskCommand, Command: "ls", Argv: "/bin/zsh -c ls"}, "item/commandExecution/requestApproval", []string{`"/bin/zsh -c ls"`}},
		"claude's tool":        {event.Ask{Kind: event.AskPermissions, Tool: &event.ToolCall{Name: "WebFetch", Input: json.RawMessage(`{"url":"http://x","n":[1]}`)}, Amendment: rules, Decisions: every}, "item/commandExecution/requestApproval", []string{`"WebFetch 'n=[1]' 'url=http://x'"`, `"acceptForSession"`}},
		"a tool of a server":   {event.Ask{Kind: event.AskPermissions, Tool: &event.ToolCall{Server: "git", Name: "push"}}, "item/commandExecution/requestApproval", []string{`"git.push"`}},
		"opencode's wish":      {event.Ask{Kind: event.AskPermissions, Title: "webfetch", Reason: "http://x y"}, "item/commandExecution/requestApproval", []string{`"webfetch 'http://x y'"`}},
		"codex's wish":         {event.Ask{Kind: event.AskPermissions, Amendment: json.RawMessage(`{"network":{"enabled":true},"fileSystem":null}`)}, "item/permissions/requestApproval", []string{`"permissions":{"network":{"enabled":true},"fileSystem":null}`}},
		"a wish of bad shape":  {event.Ask{Kind: event.AskPermissions, Title: "x", Amendment: json.RawMessage(`{"network":"` + secret + `"}`)}, "item/commandExecution/requestApproval", nil},
		"a rule of bad shape":  {event.Ask{Kind: event.AskCommand, Command: "ls", Amendment: json.RawMessage(`[["` + secret + `"]]`), Decisions: every}, "item/commandExecution/requestApproval", []string{`"acceptForSession"`}},
		"an edit":              {event.Ask{Kind: event.AskFileChange, Title: "Edit it"}, "item/fileChange/requestApproval", nil},
		"a question":           {event.Ask{Kind: event.AskInput, Questions: []event.Question{{ID: "q", Text: "?"}}}, "item/tool/requestUserInput", []string{`"autoResolutionMs":60000`}},
		"a plan":               {event.Ask{Kind: event.AskPlan, Title: "Do it"}, "item/tool/requestUserInput", []string{planYes}},
		"an elicitation":       {event.Ask{Kind: event.AskElicitation, Title: "srv", Reason: "why"}, "mcpServer/elicitation/request", nil},
		"a tool of the client": {event.Ask{Kind: event.AskTool, Tool: &event.ToolCall{Name: "t"}}, "item/tool/call", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.ask.ID, c.ask.Item, c.ask.Deadline = "a", "i", late
			f := request("th", "t", c.ask, 1000, "/w")
			if f == nil || f.method != c.method {
				t.Fatalf("it goes out as %+v", f)
			}
			plain, extended := string(f.encoding(&peer{}).Bytes()), string(f.encoding(&peer{extended: true}).Bytes())
			for _, text := range c.shows {
				if !strings.Contains(plain, text) {
					t.Errorf("%s is not in %s", text, plain)
				}
			}
			if strings.Contains(plain+extended, secret) || strings.Contains(plain, "thole") {
				t.Errorf("it has what is not the client's: %s", plain)
			}
			if !strings.Contains(extended, `"deadlineAtMs":61000`) || !strings.Contains(extended, `"kind":"`+string(c.ask.Kind)+`"`) {
				t.Errorf("the deadline is not in %s", extended)
			}
			if lab.HasCodex(t) {
				appschema.Installed(t).NewRecorder(func(problem string) { t.Error(problem) }).See(false, []byte(plain))
			}
		})
	}
	if f := request("th", "t", event.Ask{ID: "a", Kind: "auth"}, 1, "/w"); f != nil {
		t.Errorf("a kind of earlier versions goes out as %s", f.method)
	}
}

// The gauge of a client is the last model call, and what a thread used the sum of all.
func TestUsageOfTheLastCall(t *testing.T) {
	x := newSender(t)
	x.tr.state.Row.Thread.Usage = thole.Usage{Input: 1000, ContextWindow: 5000}
	for _, c := range []struct {
		used thole.Usage
		want app.ThreadUsage
	}{
		{thole.Usage{Input: 30, Output: 4, Reasoning: 2, CacheRead: 10, Last: &thole.Tokens{Input: 20, Output: 3, Reasoning: 1, CacheRead: 5, CacheWrite: 1}}, app.ThreadUsage{
			Total: app.TokenUsage{TotalTokens: 1046, InputTokens: 1040, CachedInputTokens: 10, OutputTokens: 6, ReasoningOutputTokens: 2},
			Last:  app.TokenUsage{TotalTokens: 30, InputTokens: 26, CachedInputTokens: 5, CacheWriteInputTokens: 1, OutputTokens: 4, ReasoningOutputTokens: 1},
		}},
		{thole.Usage{Input: 30, Output: 4}, app.ThreadUsage{ // of a log without it
			Total: app.TokenUsage{TotalTokens: 1034, InputTokens: 1030, OutputTokens: 4}, Last: app.TokenUsage{TotalTokens: 34, InputTokens: 30, OutputTokens: 4},
		}},
	} {
		frames := x.tr.frames([]event.Event{{Kind: event.UsageUpdated, Thread: "th", Turn: "t", Data: event.Data{Usage: &c.used}}})
		var m struct{ Params app.UsageUpdated }
		if err := json.Unmarshal(frames[0].plain.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		c.want.ModelContextWindow = new(int64(5000))
		if diff := cmp.Diff(c.want, m.Params.TokenUsage); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.used, diff)
		}
	}
}
