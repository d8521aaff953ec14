// Package exec proves thole exec with the client it is for: the official Codex SDK, which
// starts it in the place of codex, on every agent.
package exec

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// ask is what a script does with the SDK.
type ask struct {
	Model   string          `json:"model,omitempty"`
	Sandbox string          `json:"sandbox,omitempty"`
	Dir     string          `json:"dir"`
	Resume  string          `json:"resume,omitempty"`
	Inputs  []any           `json:"inputs"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Options map[string]any  `json:"options,omitempty"`
}

type item struct {
	Type     string
	Text     string
	Command  string
	Output   string `json:"aggregated_output"`
	ExitCode *int   `json:"exit_code"`
	Status   string
	Changes  []struct{ Path, Kind string }
	Result   json.RawMessage
}

type told struct {
	Thread string
	Turns  []struct {
		Events []string
		Items  []item
		Final  string
		Usage  map[string]int
		Error  string
	}
}

func run(t *testing.T, h *home.Home, a ask) (out told) {
	t.Helper()
	node, dir := lab.CodexSDK(t)
	script, err := filepath.Abs("sdk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := osexec.CommandContext(ctx, node, script, filepath.Join(dir, "node_modules/@openai/codex-sdk/dist/index.js"), h.Binary, string(raw))
	cmd.Env = h.Env()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return out
}

const schema = `{"type":"object","properties":{"seen":{"type":"string"}},"required":["seen"],"additionalProperties":false}`

// png is an image of one pixel.
var png, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

// One thread of each agent, as the SDK uses it: it works in the user's directory, runs
// commands in its sandbox without asking, goes on by its id, and answers by a schema.
func TestTheSDKRunsEveryAgent(t *testing.T) {
	for name, a := range map[string]struct{ variable, path, fetch string }{
		"codex":    {"THOLE_PROVIDERS_CODEX", lab.Codex(t), ""},
		"claude":   {"THOLE_PROVIDERS_CLAUDE", lab.Claude(t), `WebFetch {"url":"http://127.0.0.1:9/","prompt":"read it"}`},
		"opencode": {"THOLE_PROVIDERS_OPENCODE", lab.Opencode(t), `webfetch {"url":"http://127.0.0.1:9/","format":"text"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := home.New(t)
			h.Vars = append(h.Vars, a.variable+"="+a.path)
			h.Up()
			dir := t.TempDir()
			model := name + "/default"
			got := run(t, h, ask{Model: model, Sandbox: "workspace-write", Dir: dir, Inputs: []any{
				"sim: run echo from-a-command > made ;; say did it", "sim: run cat made ;; say read %tool%",
			}})
			if len(got.Turns) != 2 || got.Thread == "" {
				t.Fatalf("%+v", got)
			}
			for i, turn := range got.Turns {
				if turn.Error != "" || turn.Usage["input_tokens"] == 0 || turn.Usage["output_tokens"] == 0 {
					t.Errorf("turn %d: error %q, usage %v", i, turn.Error, turn.Usage)
				}
				if !slices.Equal(only(turn.Events, "thread.started", "turn.started", "turn.completed"), []string{"thread.started", "turn.started", "turn.completed"}) {
					t.Errorf("turn %d: events %v", i, turn.Events)
				}
			}
			if b, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(b) != "from-a-command\n" {
				t.Errorf("the file of the user's directory: %q, %v", b, err)
			}
			second := got.Turns[1]
			if !strings.HasPrefix(second.Final, "read ") || !strings.Contains(second.Final, "from-a-command") {
				t.Errorf("the last message is %q", second.Final)
			}
			i := slices.IndexFunc(second.Items, func(i item) bool { return i.Type == "command_execution" })
			if i < 0 {
				t.Fatalf("no command among %+v", second.Items)
			}
			if c := second.Items[i]; !strings.Contains(c.Command, "cat made") || !strings.Contains(c.Output, "from-a-command") || c.ExitCode == nil || *c.ExitCode != 0 || c.Status != "completed" {
				t.Errorf("the command: %+v", c)
			}
			if first := got.Turns[0].Usage["input_tokens"]; second.Usage["input_tokens"] <= first {
				t.Errorf("usage is not the thread's so far: %d after %d", second.Usage["input_tokens"], first)
			}

			picture := filepath.Join(t.TempDir(), "dot.png")
			if err := os.WriteFile(picture, png, 0o600); err != nil {
				t.Fatal(err)
			}
			formed := run(t, h, ask{Model: model, Dir: dir, Schema: json.RawMessage(schema), Inputs: []any{[]any{
				map[string]any{"type": "text", "text": `sim: give {"seen":"%images%"}`}, map[string]any{"type": "local_image", "path": picture},
			}}})
			var answer struct{ Seen string }
			if err := json.Unmarshal([]byte(formed.Turns[0].Final), &answer); err != nil || answer.Seen != fmt.Sprintf("image/png of %d bytes", len(png)) {
				t.Errorf("by the schema, with an image: %+v, %v", formed.Turns[0], err)
			}

			if a.fetch != "" { // no command: what the sandbox does not cover is not granted
				fetched := run(t, h, ask{Model: model, Sandbox: "workspace-write", Dir: dir, Inputs: []any{"sim: call " + a.fetch + " ;; say went on"}})
				turn := fetched.Turns[0]
				if !slices.ContainsFunc(turn.Items, func(i item) bool {
					return i.Type == "mcp_tool_call" && i.Status == "failed" && strings.Contains(string(i.Result), "The user denied this.")
				}) || !strings.Contains(turn.Final, "went on") {
					t.Errorf("a tool that is no command: %s", turn.Items[0].Result)
				}
			}

			again := run(t, h, ask{Model: model, Resume: got.Thread, Dir: dir, Sandbox: "read-only", Inputs: []any{"sim: run echo never > forbidden ;; say went on"}})
			if again.Thread != got.Thread || again.Turns[0].Error != "" {
				t.Errorf("resumed: %+v", again)
			}
			if _, err := os.Stat(filepath.Join(dir, "forbidden")); err == nil {
				t.Error("a read-only turn wrote a file")
			}
		})
	}
}

// only keeps the events of some kinds.
func only(events []string, kinds ...string) (kept []string) {
	for _, e := range events {
		if slices.Contains(kinds, e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// What thole cannot do is an error that says so; nothing is ignored.
func TestRefusesWhatItLacks(t *testing.T) {
	h := home.New(t)
	h.Up()
	dir := t.TempDir()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"exec", "-C", dir, "hello"}, "is in no git repository"},
		{[]string{"exec", "-C", dir, "--skip-git-repo-check", "--add-dir", "/etc", "hello"}, "a thread works in one directory"},
		{[]string{"exec", "-C", dir, "--skip-git-repo-check", "--sandbox", "open", "hello"}, `unknown sandbox "open"`},
		{[]string{"exec", "-C", dir, "--skip-git-repo-check", "-c", "notify=[\"sh\"]", "hello"}, "config.notify is not supported"},
		{[]string{"exec", "-C", dir, "--skip-git-repo-check", "--output-schema", "none", "hello"}, "read output schema"},
		{[]string{"exec", "--approve-for-me", "hello"}, "a person reviews"},
		{[]string{"exec", "resume", "--last", "hello"}, "no thread works in"},
		{[]string{"exec", "review"}, "thole exec has no review"},
	} {
		if out, words, code := h.Run(tc.args...); code == 0 || !strings.Contains(words, tc.want) {
			t.Errorf("%v: exit %d, %s%s", tc.args, code, out, words)
		}
	}
	out, words, code := h.Run("exec", "--json", "-C", dir, "--skip-git-repo-check", "-m", "test/script", "sim: fail auth")
	if code == 0 || !strings.Contains(out, `"type":"turn.failed"`) {
		t.Errorf("a failed turn: exit %d, %s%s", code, out, words)
	}
}
