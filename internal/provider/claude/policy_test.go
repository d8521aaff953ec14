package claude

import (
	"encoding/json"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

func TestReadOnly(t *testing.T) {
	for command, want := range map[string]bool{
		"ls -la":                     true,
		"cat a.txt | grep x | wc -l": true,
		"git log --oneline -5":       true,
		"git diff HEAD~1 && ls":      true,
		"find . -name '*.go'":        true,
		"rg -n foo src":              true,
		"":                           false,
		"rm -rf x":                   false,
		"ls > out":                   false,
		"ls; rm x":                   false,
		"ls & rm x":                  false,
		"ls &":                       false,
		"echo $(rm x)":               false,
		"echo `rm x`":                false,
		"cat a\nrm b":                false,
		"FOO=1 ls":                   false,
		"find . -delete":             false,
		"find . -exec rm {} +":       false,
		"find . -fprintf f x":        false,
		"git log --output=f":         false,
		"git -c alias.log=!rm log":   false,
		"git branch new":             false,
		"rg --pre=rm x":              false,
		"sort -o f f":                false,
		"sed -i s/a/b/ f":            false,
		"tee f":                      false,
		"env ls":                     false,
		"/bin/ls":                    false,
		"ls || rm x":                 false,
		"cat a | xargs rm":           false,
		"echo hi | bash":             false,
		"while true; do ls; done":    false,
		"grep 'a;rm' f":              false, // errs on the side of no
	} {
		if got := readOnly(command); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

func TestPlanAllows(t *testing.T) {
	in := func(k, v string) json.RawMessage { raw, _ := json.Marshal(map[string]string{k: v}); return raw }
	for _, c := range []struct {
		tool  string
		input json.RawMessage
		want  bool
	}{
		{"Read", nil, true},
		{"ExitPlanMode", nil, true},
		{"Write", in("file_path", "/w/x"), false},
		{"Write", in("file_path", "/data/claude/plans/p.md"), true},
		{"Write", in("file_path", "/data/claude/plans/../settings.json"), false},
		{"Edit", in("file_path", "/data/claude/plans/sub/x"), false},
		{"NotebookEdit", in("notebook_path", "/data/claude/plans/p.md"), false},
		{"Bash", in("command", "touch x"), false},
		{"mcp__fs__write", nil, false},
		{"SomethingNew", nil, false},
	} {
		if got := planAllows("/data/claude", c.tool, c.input); got != c.want {
			t.Errorf("%s %s: %v", c.tool, c.input, got)
		}
	}
}

func TestStances(t *testing.T) {
	for p, want := range map[thole.Profile]stance{
		"": {mode: modeDefault}, thole.ProfilePlan: {mode: modePlan}, thole.ProfileEdit: {mode: modeEdits},
		thole.ProfileFull: {mode: modeBypass, allow: true}, "dontAsk": {mode: modeDontAsk},
	} {
		if got, err := stanceOf(p); err != nil || got != want {
			t.Errorf("%q: %+v %v", p, got, err)
		}
	}
	if _, err := stanceOf("bypass"); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("unknown profile: %v", err)
	}
}

// An "always" is kept in the session's memory, never in the project's settings.
func TestForSession(t *testing.T) {
	raw := forSession(json.RawMessage(`[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"localSettings"}]`), "Bash")
	var rules []map[string]any
	if json.Unmarshal(raw, &rules) != nil || len(rules) != 1 || rules[0]["destination"] != "session" {
		t.Errorf("rules %s", raw)
	}
	if json.Unmarshal(forSession(nil, "WebFetch"), &rules) != nil || rules[0]["destination"] != "session" {
		t.Errorf("no suggestion: %v", rules)
	}
}

// An answer's rule that is not of the CLI's own kind never allows more than was offered.
func TestForeignRulesDoNotWiden(t *testing.T) {
	offered := json.RawMessage(`[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls:*"}],"destination":"session"}]`)
	for _, amendment := range []string{`["ls"]`, `{}`, `[]`, `null`, `"Bash"`, ``} {
		p := pending{tool: "Bash", ask: event.Ask{Kind: event.AskCommand, Amendment: offered}}
		got := p.verdictOn(event.Answer{Decision: event.DecisionAlways, Amendment: json.RawMessage(amendment)})
		if raw, _ := json.Marshal(got["updatedPermissions"]); string(raw) != string(offered) {
			t.Errorf("%s became %s", amendment, raw)
		}
	}
}
