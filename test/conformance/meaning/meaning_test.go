package meaning

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tholehq/thole/internal/commandline"
	"github.com/tholehq/thole/internal/testkit/appschema"
)

const (
	askCommand = "item/commandExecution/requestApproval"
	askFiles   = "item/fileChange/requestApproval"
	policy     = `"approvalPolicy":"on-request","sandbox":"read-only"`
)

func all(decision string) map[string]string {
	return map[string]string{askCommand: `{"decision":"` + decision + `"}`, askFiles: `{"decision":"` + decision + `"}`}
}

// done is something that an agent does.
type done struct {
	name, say string
	decision  string
	codexOnly bool   // other agents have no tool for it
	freeFor   string // the agent that asks nobody for it
}

var deeds = []done{
	{name: "two calls and a command", say: "sim: usage in=100 out=20 ;; escalate touch made && echo it\\'s $((1+1)) ;; usage in=200 cached=50 out=30 ;; say done", decision: "accept"},
	{name: "a read", say: "sim: escalate cat missing.txt | head -n 1 ;; say read", decision: "accept", freeFor: "claude"},
	{name: "a command that is declined", say: "sim: escalate touch never ;; say went on", decision: "decline"},
	{name: "a new file", say: "sim: write notes.txt one\\ntwo\\nthree\\nfour\\nfive\\n ;; say wrote", decision: "accept"},
	{name: "an edit", say: "sim: edit notes.txt three => 3 ;; say edited", decision: "accept"},
	{name: "an edit that is declined", say: "sim: edit notes.txt four => 4 ;; say went on", decision: "decline"},
	{name: "a move", say: `sim: patch *** Begin Patch\n*** Update File: notes.txt\n*** Move to: moved.txt\n@@\n-four\n+4\n*** End Patch ;; say moved`, decision: "accept", codexOnly: true},
	{name: "a deletion", say: `sim: patch *** Begin Patch\n*** Delete File: moved.txt\n*** End Patch ;; say gone`, decision: "accept", codexOnly: true},
}

func TestMeaning(t *testing.T) {
	real, ours := codex(t), served(t)
	t.Run("values", func(t *testing.T) { values(t, real, ours) })
	t.Run("commands", func(t *testing.T) { commands(t, real) })
	t.Run("permissions", func(t *testing.T) { permissions(t, real) })
	t.Run("tools", func(t *testing.T) { tools(t, ours) })
}

// All that a client receives about commands, edits, asks and usage has the values that the
// real server sends for the same deed, whatever agent does it.
func values(t *testing.T, real, ours *player) {
	id, dir := real.thread(`{` + policy + `}`)
	want := map[string][]fact{}
	for _, d := range deeds {
		want[d.name] = facts(real.turn(id, d.say, all(d.decision)), dir)
	}
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			ours.t = t
			id, dir := ours.thread(`{"model":"` + agent + `/default",` + policy + `}`)
			for _, d := range deeds {
				if d.codexOnly && agent != "codex" {
					continue
				}
				got := facts(ours.turn(id, d.say, all(d.decision)), dir)
				expect := clone(t, want[d.name])
				expect, got = alike(agent, expect), alike(agent, got)
				if d.freeFor == agent {
					expect = slices.DeleteFunc(expect, func(f fact) bool { return f.Method == askCommand })
				}
				if diff := cmp.Diff(expect, got); diff != "" {
					t.Errorf("%s (-codex +thole):\n%s", d.name, diff)
				}
			}
		})
	}
}

// alike takes away how agents differ, member by member.
func alike(agent string, list []fact) []fact {
	list = each(list, func(o map[string]any) {
		if offered, ok := o["availableDecisions"].([]any); ok { // thole always offers to go on without
			o["availableDecisions"] = slices.DeleteFunc(offered, func(d any) bool { return d == "decline" })
		}
		if diff, ok := o["diff"].(string); ok {
			var kept []string
			for line := range strings.Lines(diff) {
				if !strings.HasPrefix(line, "rename ") { // codex leaves them out, git wants them
					kept = append(kept, line)
				}
			}
			o["diff"] = core(strings.Join(kept, ""))
		}
	})
	// Usage of calls whose size the script does not say is the agent's own prompt.
	list = slices.DeleteFunc(list, func(f fact) bool {
		return f.Method == "thread/tokenUsage/updated" && !slices.Contains([]any{120.0, 280.0}, lastTotal(f))
	})
	if agent == "codex" {
		return list
	}
	list = each(list, func(o map[string]any) {
		if text, ok := o["aggregatedOutput"].(string); ok { // claude cuts it
			o["aggregatedOutput"] = strings.TrimSuffix(text, "\n")
		}
		for _, k := range []string{
			"reason",                      // the model's words
			"proposedExecpolicyAmendment", // a rule of Codex's own
			"availableDecisions",          // so is one of them
			"modelContextWindow",          // of another model
			"total",                       // other agents count side calls, such as a title
		} {
			delete(o, k)
		}
	})
	return slices.CompactFunc(list, func(a, b fact) bool { return a.Method == "thread/tokenUsage/updated" && cmp.Equal(a, b) })
}

func lastTotal(f fact) any {
	u, _ := f.Value.(map[string]any)["tokenUsage"].(map[string]any)
	last, _ := u["last"].(map[string]any)
	return last["totalTokens"]
}

func clone(t *testing.T, list []fact) (out []fact) {
	t.Helper()
	raw, err := json.Marshal(list)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A permission is granted as the real server grants it: an empty answer grants nothing.
func permissions(t *testing.T, real *player) {
	const ask = "item/permissions/requestApproval"
	const say = `sim: call request_permissions {"reason":"why","permissions":{"network":{"enabled":true}}} ;; say got %tool%`
	const config = `"config":{"features.request_permissions_tool":true}`
	for answer, granted := range map[string]bool{
		`{}`: false, `{"permissions":{}}`: false,
		`{"permissions":{"network":{"enabled":true}}}`:                   true,
		`{"permissions":{"network":{"enabled":true}},"scope":"session"}`: true,
	} {
		id, _ := real.thread(`{` + policy + `,` + config + `}`)
		said := last(real.turn(id, say, map[string]string{ask: answer}))
		if strings.Contains(said, `"enabled":true`) != granted || strings.Contains(answer, "session") != strings.Contains(said, `"scope":"session"`) {
			t.Errorf("%s: the real server's agent got %s", answer, said)
		}
	}
}

// last is the agent's last message.
func last(lines []appschema.Line) (text string) {
	for _, l := range lines {
		var v struct{ Item struct{ Type, Text string } }
		if l.Method == "item/completed" && json.Unmarshal(l.Params, &v) == nil && v.Item.Type == "agentMessage" {
			text = v.Item.Text
		}
	}
	return text
}

// The tool calls of other agents are asked for in a form that any client of Codex shows,
// and a yes is a yes.
func tools(t *testing.T, ours *player) {
	for _, c := range []struct{ agent, say, shown string }{
		{"claude", `sim: call WebFetch {"url":"http://127.0.0.1:1/a b","prompt":"what is it"} ;; say got %tool%`, `WebFetch 'prompt=what is it' 'url=http://127.0.0.1:1/a b'`},
		{"opencode", `sim: call webfetch {"url":"http://127.0.0.1:1/x","format":"text"} ;; say got %tool%`, `webfetch http://127.0.0.1:1/x`},
	} {
		t.Run(c.agent, func(t *testing.T) {
			ours.t = t
			id, dir := ours.thread(`{"model":"` + c.agent + `/default",` + policy + `}`)
			for decision, refused := range map[string]bool{"decline": true, "accept": false} {
				lines := ours.turn(id, c.say, all(decision))
				var asked []string
				for _, f := range facts(lines, dir) {
					if f.Method == askCommand {
						asked = append(asked, f.Value.(map[string]any)["command"].(string))
					}
				}
				if len(asked) != 1 || asked[0] != c.shown {
					t.Errorf("asked for %q, want %q", asked, c.shown)
				}
				if said := last(lines); strings.Contains(said, "denied") != refused {
					t.Errorf("%s: the agent got %s", decision, said)
				}
			}
		})
	}
}

// What a command is and does is written as the real server writes it.
func commands(t *testing.T, real *player) {
	id, dir := real.thread(`{` + policy + `}`)
	for _, script := range []string{
		"true", "echo it's", `echo "$HOME" '$x' \! ^a^b`, "cat a.txt", "cat -- src/a.txt | head -n 3", "sed -n 1,20p src/x.go", "sed -n '1,20p' x | cat",
		"cat x | sed -n 1,3p", "nl -ba x | sed -n 1,2p", "head -5 x", "head -n 5 x", "tail -n +3 x", "tail x", "ls", "ls -la src/", "ls -I '*.js' node_modules/a/dist",
		"find . -type f", "find src -name '*.go'", "rg --files", "rg --files | head -n 2", "rg -n 'a b' src", "grep -R TODO .", "grep -e x f | wc -l", "git grep needle src", "git ls-files", "git status",
		"cd src && cat x", "cd src && ls && rg x", "echo hi && cat x", "cat x && cat x", "cat x; make", "cat x > y", "cat $(pwd)/x", "FOO=1 cat x", "cat 'a b' || true",
		"fd x src", "fd .", "tree -L 2", "du -sh .", "awk '{print $1}' x", "wc -l x", "cat x y", "ls *.go", "printf hi", "cat <<E\nx\nE", "if true; then cat x; fi", "cat x &", "(cat x)", "é", `cat "a\d"`, "! cat x",
	} {
		raw, _ := json.Marshal(script)
		want := shellItem(real, id, dir, string(raw))
		list := []any{}
		for _, a := range commandline.Actions(script, "$CWD") {
			o := map[string]any{"type": string(a.Kind), "command": a.Command}
			for k, v := range map[string]string{"name": a.Name, "path": a.Path, "query": a.Query} {
				if v != "" {
					o[k] = strings.TrimPrefix(v, "/$") // the directory has no name yet
					if v != o[k] {
						o[k] = "$" + o[k].(string)
					}
				}
			}
			list = append(list, o)
		}
		if diff := cmp.Diff(want, map[string]any{"command": commandline.Shell(script), "commandActions": list}); diff != "" {
			t.Errorf("%s (-codex +thole):\n%s", script, diff)
		}
	}
}

// shellItem runs a command by hand and returns what its start said of it.
func shellItem(p *player, thread, dir, script string) map[string]any {
	p.t.Helper()
	before, _ := p.rec.Lines()
	p.call("thread/shellCommand", `{"threadId":"`+thread+`","command":`+script+`}`)
	i, l := p.until(len(before), "start of "+script, func(l appschema.Line) bool {
		return l.Method == "item/started" && strings.Contains(string(l.Params), `"commandExecution"`)
	})
	p.until(i, "end of "+script, func(l appschema.Line) bool { return l.Method == "turn/completed" })
	var v struct{ Item map[string]any }
	if err := json.Unmarshal(l.Params, &v); err != nil {
		p.t.Fatal(err)
	}
	item := tidy(v.Item, dir).(map[string]any)
	return map[string]any{"command": item["command"], "commandActions": item["commandActions"]}
}
