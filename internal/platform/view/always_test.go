package view_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
)

var offered = []event.Decision{event.DecisionAllow, event.DecisionAlways, event.DecisionDeny}

// TestAlways reads the rules of every agent, and of none that is known.
func TestAlways(t *testing.T) {
	command := event.Ask{Kind: event.AskCommand, Command: "npm test"}
	change := event.Ask{Kind: event.AskFileChange}
	fetch := event.Ask{Kind: event.AskPermissions, Tool: &event.ToolCall{Name: "WebFetch"}}
	served := event.Ask{Kind: event.AskPermissions, Tool: &event.ToolCall{Name: "search", Server: "web"}}
	wish := event.Ask{Kind: event.AskPermissions, Title: "Grant more permissions"}
	for _, c := range []struct {
		name, amendment string
		ask             event.Ask
		want            []string
	}{
		{"codex's words", `["npm","test"]`, command, []string{"commands that begin with npm test"}},
		{"codex's words with a blank", `["echo","a b"]`, command, []string{"commands that begin with echo 'a b'"}},
		{"codex without a rule", ``, command, []string{"this command"}},
		{"codex's files", ``, change, []string{"changes of these files"}},
		{"codex's wish", `{"network":{"enabled":true},"fileSystem":{"read":null,"write":["/tmp/x"]}}`, wish, []string{"use of the network", "writing in /tmp/x"}},
		{"codex's entries", `{"fileSystem":{"entries":[{"access":"write","path":{"type":"path","path":"/tmp/y"}}]}}`, wish, []string{"writing in /tmp/y"}},
		{"claude's prefix", `[{"type":"addRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash","ruleContent":"npm test:*"}]}]`, command, []string{"commands that begin with npm test"}},
		{"claude's new prefix", `[{"type":"addRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"npm run *"}]}]`, command, []string{"commands that begin with npm run"}},
		{"claude's command", `[{"type":"addRules","behavior":"allow","rules":[{"toolName":"Bash","ruleContent":"make all"}]}]`, command, []string{"the command make all"}},
		{"claude's whole tool", `[{"type":"addRules","behavior":"allow","rules":[{"toolName":"Bash"}]}]`, command, []string{"every command"}},
		{"claude's page", `[{"type":"addRules","behavior":"allow","rules":[{"toolName":"WebFetch","ruleContent":"domain:example.org"}]}]`, fetch, []string{"the tool WebFetch on example.org"}},
		{"claude's server", `[{"type":"addRules","behavior":"allow","rules":[{"toolName":"mcp__web__search"}]}]`, served, []string{"the tool search of web"}},
		{"claude's folders and mode", `[{"type":"addDirectories","directories":["/srv/a"],"destination":"session"},{"type":"setMode","mode":"acceptEdits"}]`, change,
			[]string{"work in the folder /srv/a", "every change of files, without a question"}},
		{"opencode's commands", `{"permission":"bash","patterns":["npm test *","ls"]}`, command, []string{"commands that begin with npm test", "the command ls"}},
		{"opencode's edits", `{"permission":"edit","patterns":["*"]}`, change, []string{"every change of files"}},
		{"opencode's folder", `{"permission":"external_directory","patterns":["/srv/*"]}`, wish, []string{"the tool external_directory on /srv/*"}},
		{"an odd list", `[{"odd":[{"a":1}]}]`, fetch, []string{"the tool WebFetch"}},
		{"an odd kind among known", `[{"type":"replaceRules","rules":[{"toolName":"x"}]},{"type":"setMode","mode":"acceptEdits"}]`, fetch, []string{"the tool WebFetch", "every change of files, without a question"}},
		{"a rule that denies", `[{"type":"addRules","behavior":"deny","rules":[{"toolName":"Bash"}]}]`, fetch, []string{"the tool WebFetch"}},
		{"an odd object", `{"odd":{"a":[1]}}`, served, []string{"the tool search of web"}},
		{"an odd rule of a command", `{"odd":1}`, command, []string{"every command"}},
		{"an odd wish", `{"odd":1}`, wish, []string{"Grant more permissions"}},
		{"no JSON", `{`, fetch, []string{"the tool WebFetch"}},
		{"hidden signs", `["a\u202eb"]`, command, nil},
	} {
		c.ask.Amendment, c.ask.Decisions = json.RawMessage(c.amendment), offered
		got := view.Always(c.ask)
		if c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if len(got) == 0 || strings.ContainsAny(strings.Join(got, ""), "{}[]\"\u202e") {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if got := view.Always(event.Ask{Kind: event.AskInput}); got != nil {
		t.Errorf("not offered: %q", got)
	}
}

// TestNoAmendment shows that an agent's own rule is in no question, asked or answered.
func TestNoAmendment(t *testing.T) {
	ask := event.Ask{ID: "a", Kind: event.AskCommand, Decisions: offered, Amendment: json.RawMessage(`["npm","test"]`)}
	q := view.OfAsk(fold.AskRecord{Ask: ask, State: event.AskAnswered, Answer: &event.Answer{Decision: event.DecisionAlways, Message: "m", Amendment: ask.Amendment}})
	raw, err := json.Marshal(q)
	if err != nil || strings.Contains(string(raw), "amendment") || q.Answer.Decision != event.DecisionAlways || q.Answer.Message != "m" ||
		!slices.Equal(q.Always, []string{"commands that begin with npm test"}) {
		t.Errorf("%s, %v", raw, err)
	}
}
