package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// adapter is codex's own adapter of the protocol on a program that it takes for codex.
func adapter(t testing.TB, codex, dir string, env ...string) *exec.Cmd {
	t.Helper()
	node, modules := lab.ACP(t)
	cmd := exec.Command(node, filepath.Join(modules, "node_modules/@agentclientprotocol/codex-acp/dist/index.js"))
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "CODEX_PATH=" + codex, "NO_BROWSER=1", "INITIAL_AGENT_MODE=workspace-write"}, env...)
	return cmd
}

// pick answers a permission by what an option means; their ids are the agent's own.
func (e *editor) pick(m message, kind string) {
	e.t.Helper()
	for _, o := range m.Params["options"].([]any) {
		if o.(obj)["kind"] == kind {
			e.choose(m, o.(obj)["optionId"].(string))
			return
		}
	}
	e.t.Fatalf("no option is %s: %v", kind, m.Params["options"])
}

// tour takes an agent through the same script and returns what an editor is shown: kinds
// in order, pieces of one message as one.
func tour(t *testing.T, e *editor, dir string) (trace []string) {
	t.Helper()
	e.greet(forms)
	s := e.create(dir)
	for _, step := range []struct{ name, say, kind string }{
		{"message", "sim: think weigh it ;; say hello", "allow_once"},
		{"allowed", "sim: escalate touch made ;; say done", "allow_once"},
		{"rejected", "sim: escalate touch never ;; say went on", "reject_once"},
		{"edit", "sim: write made.txt by the agent ;; say wrote it", "allow_once"},
		{"steps", "sim: todo [x] read it | [~] write it ;; say planned", "allow_once"},
	} {
		e.mu.Lock()
		from := len(e.lines)
		e.mu.Unlock()
		wait := e.say(s, step.say)
		wait.answering(func(m message) { e.pick(m, step.kind) })
		out, err := wait.answer()
		e.mu.Lock()
		kinds := shownKinds(e.lines[from:])
		e.mu.Unlock()
		if err != nil {
			t.Fatalf("%s: %+v", step.name, err)
		}
		trace = append(trace, fmt.Sprintf("%s: %s, %v", step.name, strings.Join(kinds, " "), out["stopReason"]))
	}
	return trace
}

// shownKinds are the kinds of the agent's messages, with what a tool call is and became.
func shownKinds(lines []string) (out []string) {
	for _, l := range lines {
		side, line, _ := strings.Cut(l, ": ")
		var m struct {
			Method string
			Params struct{ Update obj }
		}
		if side != "agent" || json.Unmarshal([]byte(line), &m) != nil || m.Method == "" {
			continue
		}
		word := m.Method
		if u := m.Params.Update; m.Method == "session/update" {
			word, _ = u["sessionUpdate"].(string)
			switch word {
			case "available_commands_update", "session_info_update", "usage_update", "config_option_update":
				continue
			case "tool_call":
				word += ":" + u["kind"].(string) + ":" + u["status"].(string)
			case "tool_call_update":
				if v, ok := u["status"].(string); ok {
					word += ":" + v
				}
			}
		} else if strings.HasPrefix(m.Method, "_") {
			continue
		}
		if n := len(out); n == 0 || out[n-1] != word {
			out = append(out, word)
		}
	}
	return out
}

// differ are the steps in which an editor is shown something else, with the reason. One
// that becomes the same turns the test red: take it out, and out of docs/acp.md.
var differ = map[string]string{
	"rejected": "the adapter's one way to say no stops the turn; by thole the agent hears of it and goes on",
}

// The same script by thole and by codex's own adapter on the real codex.
func TestLikeTheAdapterOfCodex(t *testing.T) {
	sim := modelsim.Start(t, modelsim.Options{})
	home := filepath.Join(lab.Open(t), "codex")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := modelsim.CodexConfig(home, sim.URL()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	theirs := tour(t, open(t, adapter(t, lab.Codex(t), dir, "HOME="+home, "CODEX_HOME="+home)), dir)
	r := newRig(t, "codex")
	ours := tour(t, open(t, r.acp("--provider", "codex", "--profile", "ask")), r.dir)
	for i := range theirs {
		name, _, _ := strings.Cut(theirs[i], ":")
		why, listed := differ[name]
		if same := theirs[i] == ours[i]; same == listed {
			t.Errorf("the editor is shown by the adapter %s\nby thole %s\nlisted as another: %v %s", theirs[i], ours[i], listed, why)
		}
	}
}

// A client of the protocol for the command line, which we did not write and which is made
// with an older library than the editor's: it starts thole acp, says yes and reads the end.
func TestAnotherClient(t *testing.T) {
	node, modules := lab.ACP(t)
	r := newRig(t)
	home := t.TempDir()
	cmd := exec.Command(node, filepath.Join(modules, "node_modules/acpx/dist/cli.js"), "--agent", r.Binary+" acp --provider test --profile ask",
		"--cwd", r.dir, "--approve-all", "--format", "json", "--json-strict", "exec", "sim: write by-acpx.txt hello ;; run cat by-acpx.txt ;; say read %tool%")
	cmd.Dir = r.dir
	cmd.Env = append(r.Env(), "HOME="+home)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(r.dir, "by-acpx.txt")); err != nil || !strings.HasPrefix(string(text), "hello") {
		t.Errorf("the agent wrote %q: %v", text, err)
	}
	for _, want := range []string{`"end_turn"`, `"tool_call"`, `"session/request_permission"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in what acpx tells:\n%s", want, out)
		}
	}
}

// Codex's own adapter takes thole for codex, and works with every agent.
func TestTheAdapterOnThole(t *testing.T) {
	r := newRig(t, "codex", "claude", "opencode")
	e := open(t, adapter(t, r.Binary, r.dir, r.Env()...))
	e.greet(forms)
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			if agent == "opencode" && os.Getenv("THOLE_SOAK") == "" {
				t.Skip("opencode starts slowly; THOLE_SOAK runs it too")
			}
			s := e.create(r.dir)
			e.call("session/set_config_option", obj{"sessionId": s, "configId": "model", "value": agent + "/default"})
			wait := e.say(s, "sim: run echo from-$((40+2)) ;; say it printed %tool%")
			wait.answering(func(m message) { e.pick(m, "allow_once") })
			wait.ends("end_turn")
			if got := e.text(s, "agent_message_chunk"); !strings.Contains(got, "from-42") {
				t.Errorf("the agent said %q", got)
			}
		})
	}
}
