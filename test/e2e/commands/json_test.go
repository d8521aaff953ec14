package commands_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/cli"
	"github.com/tholehq/thole/test/e2e/home"
)

// notShaped are commands whose output is not a document of thole's, with the reason.
var notShaped = map[string]string{
	"thole acp": "a protocol", "thole app-server": "a protocol", "thole exec-server": "a protocol", "thole exec": "events of codex exec", "thole exec resume": "events of codex exec",
	"thole executor serve": "a service", "thole daemon run": "a service", "thole up": "stays", "thole serve": "stays", "thole relay": "stays", "thole relay serve": "stays", "thole exec-server forward": "stays", "thole exec-server connect": "what the command there prints", "thole demo-model": "stays", "thole tui": "a terminal", "thole thread terminal": "a terminal",
	"thole codex run": "a terminal", "thole codex attach": "needs a running Codex", "thole provider login": "a terminal", "thole provider try": "a terminal",
	"thole service install": "changes the machine", "thole service uninstall": "changes the machine", "thole help": "text", "thole completion": "text",
	"thole thread tail": "follows", "thole run": "follows", "thole thread send": "follows",
}

var name = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// shape names what is wrong with a value that --json printed.
func shape(at string, v any) (bad []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, one := range v {
			if regexp.MustCompile(`^[a-z]+[A-Z]`).MatchString(key) {
				bad = append(bad, at+"."+key+" is not in snake_case")
			}
			if strings.HasSuffix(key, "_at") && name.MatchString(key) && one != nil {
				text, isText := one.(string)
				if _, err := time.Parse(time.RFC3339Nano, text); text != "" && err != nil || !isText {
					bad = append(bad, fmt.Sprintf("%s.%s is %v, no time in RFC 3339", at, key, one))
				}
			}
			bad = append(bad, shape(at+"."+key, one)...)
		}
	case []any:
		for i, one := range v {
			bad = append(bad, shape(fmt.Sprintf("%s[%d]", at, i), one)...)
		}
	}
	return bad
}

// Every command prints one array or object with --json, or is listed with the reason why
// not; one that fails prints its error as an object.
func TestJSONHasOneShape(t *testing.T) {
	h := home.New(t)
	thread, _ := must(t, h, 0, "thread", "start", "--empty", "-q")
	id := strings.TrimSpace(thread)
	job, _ := must(t, h, 0, "job", "submit", "--thread-id", id, "-q")
	must(t, h, 0, "job", "complete", strings.TrimSpace(job), "--summary", "done")
	must(t, h, 0, "token", "create", "ci")
	words := strings.NewReplacer("THREAD", id, "JOB", strings.TrimSpace(job), "my-template", filepath.Join(t.TempDir(), "t"), "thole-backup.db", filepath.Join(t.TempDir(), "b.db"), "home.tar", filepath.Join(t.TempDir(), "home.tar"), "chain.jsonl", filepath.Join(t.TempDir(), "chain.jsonl"), " files", " "+filepath.Join(t.TempDir(), "f"))
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
		path := cmd.CommandPath()
		if cmd.HasSubCommands() && cmd.Args == nil || notShaped[path] != "" || cmd == cmd.Root() || strings.HasPrefix(path, "thole completion") {
			return
		}
		line, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
		if cmd.HasSubCommands() && !strings.HasPrefix(line, path+" ") || strings.ContainsAny(line, `"'>`) && !strings.Contains(line, "> ") {
			return // a group, or quoted words; the commands below it are walked
		}
		line, _, _ = strings.Cut(line, " > ")
		args := append([]string{"--json"}, strings.Fields(words.Replace(line))[1:]...)
		out, errs, code := h.Run(args...)
		text := out
		if strings.TrimSpace(out) == "" {
			text = errs
		}
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("thole %s: exit %d, %v:\n%s%s", strings.Join(args, " "), code, err, out, errs)
			return
		}
		if _, isText := v.(string); isText || v == nil {
			t.Errorf("thole %s prints %s", strings.Join(args, " "), text)
		}
		for _, bad := range shape("", v) {
			t.Errorf("thole %s: %s", strings.Join(args, " "), bad)
		}
		if code == 1 {
			t.Errorf("thole %s: exit 1: %s", strings.Join(args, " "), errs)
		}
	}
	walk(cli.Tree())
}
