package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// requests is how many random requests both servers get.
const requests = 1200

// quiet are methods that change no more than the threads of the test and need no
// network, account or model. None takes a thread away: what follows would be compared for
// nothing.
var quiet = []string{
	"thread/start", "thread/resume", "thread/fork", "thread/read", "thread/list", "thread/search", "thread/loaded/list", "thread/turns/list", "thread/items/list",
	"thread/name/set", "thread/unsubscribe", "thread/settings/update", "thread/goal/get", "thread/queue/list",
	"thread/queue/delete", "thread/queue/reorder", "thread/queue/update", "thread/metadata/update", "thread/readState/update", "threadSection/list",
	"turn/steer", "turn/interrupt", "model/list", "permissionProfile/list", "collaborationMode/list", "configRequirements/read", "fuzzyFileSearch",
	"fs/getMetadata", "fs/readDirectory", "fs/readFile", "command/exec/write", "command/exec/terminate", "command/exec/resize", "no/such/method",
}

// TestRandomRequests sends the same random requests, sound and unsound, to the real
// server and to ours. Each must answer or refuse as the other does; the table of
// differences in the documentation has every exception with its reason.
func TestRandomRequests(t *testing.T) {
	known, used := documented(t), map[string]bool{}
	shapes := requestShapes(t)
	work := t.TempDir()
	theirs, ours := realServer(t, work), ourServer(t, work)
	rng := rand.New(rand.NewPCG(1, 2))
	found := map[string]string{}
	for i := range requests {
		method := quiet[rng.IntN(len(quiet))]
		params := random(rng, shapes, method)
		a, b := theirs.ask(t, method, params), ours.ask(t, method, params)
		if a == b {
			continue
		}
		if row := known.find(method, a, b); row != "" {
			used[row] = true
			continue
		}
		key := fmt.Sprintf("| `%s` | %s | %s |", method, a, b)
		if _, ok := found[key]; !ok {
			found[key] = fmt.Sprintf("request %d: %s; Codex: %s; thole: %s", i, params, theirs.said, ours.said)
		}
	}
	keys := make([]string, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		t.Errorf("%s is not documented; %s", key, found[key])
	}
	for _, row := range known {
		if !used[row.text] {
			t.Errorf("no request shows the documented difference any more: %s", row.text)
		}
	}
}

// side is one of the two servers, with what its placeholders stand for.
type side struct {
	c     *appclient.Client
	names *strings.Replacer
	said  string // with the last refusal
}

// ask sends a request and sums the answer up: ok with the members of the result, or
// the code of the refusal.
func (s *side) ask(t *testing.T, method, params string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.said = ""
	var raw json.RawMessage
	err := s.c.Call(ctx, method, json.RawMessage(s.names.Replace(params)), &raw)
	if err != nil {
		var refused *appclient.Error
		if !errors.As(err, &refused) {
			t.Fatalf("%s %s: %v", method, params, err)
		}
		s.said = refused.Message
		return fmt.Sprint(refused.Code)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return "ok"
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	sort.Strings(names)
	return "ok " + strings.Join(names, " ")
}

func realServer(t *testing.T, work string) *side {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "codex")
	if err := modelsim.CodexConfig(dir, modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(lab.Codex(t), "app-server")
	cmd.Env = []string{"HOME=" + filepath.Dir(dir), "CODEX_HOME=" + dir, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = lab.Leash()
	return newSide(t, cmd, work)
}

func ourServer(t *testing.T, work string) *side {
	t.Helper()
	h := home.New(t)
	h.Vars = append(h.Vars, "THOLE_PROVIDERS_CODEX="+lab.Codex(t))
	if err := modelsim.CodexConfig(filepath.Join(h.Dir, ".codex"), modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	return newSide(t, h.Command("app-server"), work)
}

func newSide(t *testing.T, cmd *exec.Cmd, work string) *side {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 64)
	c, err := appclient.Pipe(t.Context(), out, in, appclient.Options{Name: "random", Experimental: true, OnRequest: func(*appclient.Request) {},
		OnNotification: func(n appclient.Notification) {
			if n.Method == "turn/completed" {
				select {
				case ended <- struct{}{}:
				default:
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s := &side{c: c}
	var ids []string
	for range 2 {
		var made struct {
			Thread struct {
				ID string `json:"id"`
			} `json:"thread"`
		}
		if err := c.Call(t.Context(), "thread/start", map[string]any{"cwd": work, "sandbox": "read-only", "approvalPolicy": "never"}, &made); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.Thread.ID)
		// Codex knows a thread only when it has had a turn.
		if err := c.Call(t.Context(), "turn/start", map[string]any{"threadId": made.Thread.ID, "input": []any{map[string]any{"type": "text", "text": "sim: say hello", "text_elements": []any{}}}}, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("no end of the first turn")
		}
	}
	s.names = strings.NewReplacer("$A", ids[0], "$B", ids[1], "$DIR", work)
	return s
}

// property is one member of a request's params by the schema.
type property struct {
	name     string
	required bool
	types    []string
	enum     []string
}

// requestShapes are the params of every method by the schema of the installed codex.
func requestShapes(t *testing.T) map[string][]property {
	t.Helper()
	doc := requestSchema(t)
	all := map[string][]property{}
	for _, one := range doc.OneOf {
		var props []property
		one.Properties.Params.collect(doc.Definitions, &props)
		sort.Slice(props, func(i, j int) bool { return props[i].name < props[j].name })
		all[one.Properties.Method.Enum[0]] = props
	}
	return all
}

// random makes params for a method: most of them sound.
func random(rng *rand.Rand, shapes map[string][]property, method string) string {
	switch rng.IntN(40) {
	case 0:
		return "null"
	case 1:
		return "[]"
	case 2:
		return `{"noSuchMember":7}`
	}
	var members []string
	for _, p := range shapes[method] {
		if p.required && rng.IntN(20) > 0 || !p.required && rng.IntN(4) == 0 {
			members = append(members, fmt.Sprintf("%q:%s", p.name, value(rng, p)))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// pools are values for members by name: sound ones first, and more of them.
var pools = map[string][]string{
	"threadId":       {`"$A"`, `"$A"`, `"$B"`, `"$B"`, `"01a1dcad-9f64-7cf1-b7d7-ca85211bb200"`, `"zz"`, `""`},
	"path":           {`"$DIR"`, `"$DIR/none"`, `"relative"`},
	"cwd":            {`"$DIR"`, `"$DIR"`, `"relative"`},
	"roots":          {`["$DIR"]`, `[]`},
	"limit":          {`1`, `5`, `100`, `"x"`, `-1`},
	"cursor":         {`null`, `null`},
	"name":           {`"a name"`, `"a name"`, `" "`, `""`},
	"searchTerm":     {`"name"`, `"nothing has this"`},
	"input":          {`[{"type":"text","text":"x","text_elements":[]}]`, `[{"type":"smell"}]`, `[{}]`, `[]`, `"x"`},
	"approvalPolicy": {`"on-request"`, `"never"`, `"untrusted"`, `"often"`},
	"sandbox":        {`"read-only"`, `"workspace-write"`, `"open"`},
	"sandboxPolicy":  {`{"type":"readOnly"}`, `{"type":"workspaceWrite"}`, `{"type":"glass"}`, `{}`},
	"permissions":    {`null`, `":nothing"`},
}

// unset are members that the random requests leave out: what they mean is tested by
// name, and their values are whole documents.
var unset = []string{
	"model", "modelProvider", "config", "dynamicTools", "history", "path", "collaborationMode", "environments", "initialTurnsPage", "additionalContext",
	"baseInstructions", "developerInstructions", "selectedCapabilityRoots", "serviceTier", "effort", "runtimeWorkspaceRoots", "projectId", "threadSource",
}

func value(rng *rand.Rand, p property) string {
	if slices.Contains(unset, p.name) && !p.required {
		return "null"
	}
	if pool := pools[p.name]; pool != nil {
		return pool[rng.IntN(len(pool))]
	}
	if rng.IntN(12) == 0 {
		return []string{`7`, `"x"`, `{}`, `[]`, `true`}[rng.IntN(5)]
	}
	if len(p.enum) > 0 {
		return fmt.Sprintf("%q", p.enum[rng.IntN(len(p.enum))])
	}
	if len(p.types) == 0 {
		return "null"
	}
	switch p.types[0] {
	case "string":
		return `"x"`
	case "integer", "number":
		return "1"
	case "boolean":
		return []string{"true", "false"}[rng.IntN(2)]
	case "array":
		return "[]"
	}
	return "{}"
}

// row is one documented difference.
type row struct{ text, method, theirs, ours string }

type rows []row

func (all rows) find(method, theirs, ours string) string {
	for _, r := range all {
		if (r.method == method || r.method == "*") && match(r.theirs, theirs) && match(r.ours, ours) {
			return r.text
		}
	}
	return ""
}

// match compares a cell with an answer; ok stands for every ok.
func match(cell, answer string) bool {
	return cell == answer || cell == "ok" && strings.HasPrefix(answer, "ok ")
}

// documented reads the table of differences.
func documented(t *testing.T) (all rows) {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/protocol/app-server.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(raw), "| method | Codex answers | thole answers | why |\n")
	if !ok {
		t.Fatal("the documentation has no table of differences")
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			break
		}
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		for name := range strings.SplitSeq(cells[0], "` `") {
			all = append(all, row{text: strings.TrimSpace(line) + " (" + name + ")", method: name, theirs: cells[1], ours: cells[2]})
		}
	}
	if len(all) == 0 {
		t.Fatal("the table of differences is empty")
	}
	return all
}
