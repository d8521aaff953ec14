//go:build linux

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tholehq/thole/internal/cli"
)

// notJSON are the commands whose output is not thole's to shape.
var notJSON = map[string]string{
	"thole acp": "speaks a protocol", "thole app-server": "speaks a protocol", "thole exec-server": "speaks a protocol", "thole exec-server connect": "speaks a protocol",
	"thole exec-server forward": "speaks a protocol", "thole executor serve": "speaks a protocol", "thole relay serve": "speaks a protocol",
	"thole exec": "prints Codex's events", "thole exec resume": "prints Codex's events", "thole codex run": "is Codex's terminal", "thole tui": "is Codex's terminal",
	"thole thread terminal": "is a terminal", "thole provider login": "is an agent's terminal", "thole thread port": "needs a browser's tunnel", "thole help": "prints help",
	"thole daemon run": "serves until it ends", "thole serve": "serves until it ends", "thole up": "serves until it ends", "thole demo-model": "serves until it ends",
	"thole restore": "needs a home without an owner", "thole db restore": "needs a home without an owner", "thole db migrate": "needs PostgreSQL", "thole db move": "needs PostgreSQL",
	"thole service install": "changes the machine", "thole service uninstall": "changes the machine", "thole codex attach": "needs a Codex server",
	"thole codex sessions end": "needs a Codex session", "thole codex sessions inspect": "needs a Codex session",
	"thole thread push": "needs a remote", "thole thread pr": "needs a remote", "thole daemon stop": "ends the owner of this test",
}

// What --json prints has one style, on every command: names in snake_case, times in RFC 3339,
// a bare array or object, or one per line where the command goes on; words of status are ours.
func TestEveryCommandPrintsOneStyleOfJSON(t *testing.T) {
	r := newRig(t)
	left := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		if c.Runnable() && notJSON[c.CommandPath()] == "" && (!c.HasSubCommands() || c.CommandPath() == "thole") {
			left[c.CommandPath()] = true
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := cli.Tree()
	walk(root)
	do := func(want int, args ...string) []any {
		t.Helper()
		c, _, err := root.Find(args)
		if err != nil {
			t.Fatal(err)
		}
		delete(left, c.CommandPath())
		out, errs, code := r.in(r.repo, append([]string{"--json"}, args...)...)
		if code != want {
			t.Errorf("thole %q: exit %d: %.300s%.300s", args, code, out, errs)
		}
		if code != 0 {
			var said struct {
				Error struct{ Code, Message string }
			}
			if lines := strings.Split(strings.TrimSpace(errs), "\n"); json.Unmarshal([]byte(lines[len(lines)-1]), &said) != nil || said.Error.Code == "" || said.Error.Message == "" {
				t.Errorf("thole %q says its error as %s", args, errs)
			}
		}
		values, bad := style(out)
		if code == 0 && len(values) == 0 {
			bad = append(bad, "it prints nothing")
		}
		if len(bad) > 0 {
			t.Errorf("thole %q: %s", args, strings.Join(bad, "; "))
		}
		return values
	}
	field := func(values []any, name string) string {
		t.Helper()
		for _, v := range values {
			if list, ok := v.([]any); ok && len(list) > 0 {
				v = list[0]
			}
			if o, ok := v.(map[string]any); ok {
				if s, ok := o[name].(string); ok && s != "" {
					return s
				}
			}
		}
		t.Fatalf("no %s in %v", name, values)
		return ""
	}
	file := func(name, text string) string {
		t.Helper()
		at := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}

	ran := do(0, "run", "--model", "test/script", "--profile", "full", "--name", "One", "sim: todo a|b ;; run echo x ;; write made.txt x ;; say done")
	thread := ran[len(ran)-1].(map[string]any)["ran"].(map[string]any)["thread_id"].(string)
	do(0)
	do(0, "ps", "--all")
	do(0, "thread", "list")
	do(0, "thread", "show", thread)
	do(0, "thread", "diff", thread)
	do(0, "thread", "diff", thread, "--stat")
	do(0, "thread", "usage", thread)
	do(0, "thread", "wait", thread)
	do(0, "thread", "rename", thread, "Another")
	do(0, "thread", "network", thread)
	do(0, "thread", "transcript", thread)
	do(0, "thread", "pull", thread)
	do(0, "thread", "undo", thread)
	do(0, "thread", "fork", thread)
	do(0, "thread", "send", thread, "sim: write made.txt y ;; say done")
	do(0, "thread", "merge", thread)
	do(0, "thread", "apply", thread)
	do(9, "thread", "setup", thread)
	do(0, "thread", "interrupt", thread)
	do(0, "thread", "close", thread)
	do(0, "thread", "archive", thread)
	do(0, "thread", "unarchive", thread)
	share := field(do(0, "thread", "share", thread), "id")
	do(0, "thread", "share", "list")
	do(0, "thread", "share", "revoke", share)

	asking := do(8, "thread", "start", "--model", "test/script", "--on-ask", "fail", "sim: ask which colour ;; say done")[0].(map[string]any)["thread"].(map[string]any)["id"].(string)
	do(0, "thread", "queue", "add", asking, "sim: say one")
	do(0, "thread", "queue", "add", asking, "sim: say two")
	do(0, "thread", "queue", "list", asking)
	do(0, "thread", "queue", asking)
	do(0, "thread", "queue", "move", asking, "2", "1")
	do(0, "thread", "queue", "remove", asking, "2")
	do(0, "thread", "queue", "remove", asking, "1")
	do(0, "inbox")
	do(0, "thread", "answer", asking, "--answer", "q1=blue")
	do(0, "thread", "wait", asking)
	do(8, "thread", "send", asking, "--on-ask", "fail", "sim: ask which colour ;; say done")
	do(0, "inbox", "answer", field(do(0, "inbox"), "id"), "--answer", "q1=red")
	do(0, "thread", "wait", asking)
	do(0, "thread", "tail", "--after", "0", "--timeout", "1s", asking)

	job := func() string {
		t.Helper()
		return field(do(0, "job", "submit", "--target", "desktop", "--thread-id", "t", "--task-kind", "ci", "--summary", "tests"), "job_id")
	}
	done := job()
	do(0, "job", "complete", done, "--summary", "ok", "--result-file", file("report.txt", "all is well\n"))
	do(0, "job", "fail", job(), "--reason", "it broke")
	do(0, "job", "cancel", job(), "--reason", "not needed")
	do(0, "job", "list")
	do(0, "job", "query", done)
	do(0, "job", "wait", done)
	do(0, "job", "run", "--target", "desktop", "--thread-id", "t", "--wait", "--", "true")
	do(0, "desktop", "installation-state") // off; what is on is tried in test/e2e/desktop
	do(7, "desktop", "installation-state", "repair", "--read-transport", "direct_file_read")
	do(0, "desktop", "binding", "list")
	do(7, "desktop", "binding", "repair", "--source-thread-id", "t", "--caller-automation-id", "a", "--bridge-thread-id", "b")
	do(3, "desktop", "binding", "unbind", "--source-thread-id", "t")
	for _, c := range []string{"bridge-preflight", "claim-next-ready", "list-arm-pending", "list-pause-due"} {
		do(7, "desktop", c, "--bridge-thread-id", "b")
	}
	do(4, "desktop", "read-snapshot", "--expected-revision", "1")
	for _, c := range []string{"note-arm-pending", "note-arm", "note-boundary-crossed"} {
		do(7, "desktop", c, "--source-thread-id", "t")
	}
	do(3, "desktop", "reconcile", "--source-thread-id", "t")
	do(3, "desktop", "note-paused", "--source-thread-id", "t", "--generation", "1")
	do(3, "desktop", "read-artifact", "none")
	batch := field(do(0, "batch", "list"), "batch_id")
	view := do(0, "batch", "inspect", batch)
	do(0, "batch", "inspect-head", "t")
	artifact := regexp.MustCompile(`"artifact_id":"([^"]+)"`).FindStringSubmatch(r.must("--json", "batch", "inspect", batch))
	if artifact == nil {
		t.Fatalf("no artifact in %v", view)
	}
	do(0, "artifact", "inspect", artifact[1])
	do(0, "artifact", "pin", artifact[1])
	do(0, "artifact", "revoke", field(do(0, "artifact", "read", artifact[1]), "artifact_recovery_lease_id"))
	do(0, "batch", "close-head", "t", "--reason", "cancelled")
	do(4, "batch", "deliver", batch)

	do(0, "budget", "show", field(do(0, "budget", "set", "user", "$20"), "id"))
	do(0, "budget", "rm", field(do(0, "budget", "list"), "id"))
	do(0, "usage")
	do(0, "usage", "prices")
	do(0, "secret", "set", "my-key", "--kind", "env", "--file", file("key", "value"))
	do(0, "secret", "list")
	do(0, "secret", "show", "my-key")
	do(0, "secret", "test", "my-key")
	do(0, "secret", "rotate-key")
	do(0, "secret", "rm", "my-key")
	do(0, "provider", "list")
	do(0, "provider", "config", "claude")
	do(0, "provider", "probe", "test")
	do(0, "provider", "try", "--provider", "test", "sim: say x")
	do(0, "audit", "list")
	do(0, "audit", "list", "--chain")
	do(0, "audit", "verify")
	do(0, "audit", "export")
	do(0, "token", "create", "mine")
	do(0, "token", "list")
	do(0, "token", "revoke", "mine")
	do(0, "login")
	do(0, "login", "list")
	do(3, "login", "revoke", "none")
	do(3, "logout")
	do(0, "user", "add", "ada", "--email", "ada@example.org")
	do(0, "user", "invite", "ada")
	do(4, "user", "reset", "ada") // who has chosen none yet
	do(0, "user", "list")
	do(0, "department", "add", "readers")
	do(0, "department", "add", "book-club", "--parent", "readers")
	do(0, "department", "move", "book-club")
	do(0, "department", "join", "readers", "ada")
	do(0, "department", "list")
	do(0, "role", "list")
	do(0, "grant", "revoke", field(do(0, "grant", "add", "viewer", "--user", "ada", "--on", "department:readers"), "id"))
	do(0, "grant", "list")
	do(0, "department", "leave", "readers", "ada")
	do(0, "department", "rm", "book-club")
	do(0, "user", "disable", "ada")
	do(0, "user", "enable", "ada")
	do(0, "executor", "list")
	do(0, "executor", "paths")
	x := field(do(0, "executor", "list"), "id")
	do(0, "executor", "show", x)
	do(0, "executor", "sync", thread)
	do(0, "codex", "sessions", "list")
	do(0, "codex", "status")
	do(0, "config", "show", "--origin")
	do(0, "daemon", "status")
	do(0, "db", "check")
	do(0, "db", "backup", filepath.Join(t.TempDir(), "copy.db"))
	do(0, "backup", filepath.Join(t.TempDir(), "home.tar"))
	do(0, "check")
	do(0, "sweep", "--once")
	do(0, "version")
	do(3, "service", "status")
	do(0, "workspace", "export", thread, filepath.Join(t.TempDir(), "out"))
	do(0, "manifest", "template", t.TempDir())
	do(2, "manifest", "validate", file("manifest.json", "{}"))
	// Whether something is missing here is not the question.
	delete(left, "thole doctor")
	out, errs, _ := r.in(r.repo, "--json", "doctor")
	if values, bad := style(out); len(values) != 1 || len(bad) > 0 || errs != "" && !json.Valid([]byte(errs)) {
		t.Errorf("doctor: %q: %s", bad, errs)
	}
	do(0, "thread", "delete", "--yes", thread)
	for name := range left {
		t.Errorf("%s is not tried: add it, or say in notJSON why not", name)
	}
}

var (
	snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	timeText  = regexp.MustCompile(`^\d{4}-\d\d-\d\d[ T]\d\d:\d\d`)
	// documents are members whose values are others': names in them are not thole's.
	documents = map[string]bool{"metadata": true, "arguments": true, "result": true, "input": true, "output": true, "schema": true, "structured_content": true, "content": true, "env": true, "answers": true, "proof": true}
)

// style reads the values of an output and says what is wrong with how they are written.
func style(out string) (values []any, bad []string) {
	dec := json.NewDecoder(bytes.NewReader([]byte(out)))
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return values, bad
		}
		if err != nil {
			return values, append(bad, fmt.Sprintf("not JSON: %v in %.100s", err, out))
		}
		switch v.(type) {
		case map[string]any, []any:
		default:
			bad = append(bad, fmt.Sprintf("%v is not an array or object", v))
		}
		values = append(values, v)
		bad = append(bad, styleOf(v, "")...)
	}
}

func styleOf(v any, path string) (bad []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			bad = append(bad, styleOf(e, path+"[]")...)
		}
	case map[string]any:
		for name, e := range v {
			at := path + "." + name
			if !snakeCase.MatchString(name) {
				bad = append(bad, at+" is not in snake_case")
			}
			if _, isNumber := e.(float64); isNumber && strings.HasSuffix(name, "_at") {
				bad = append(bad, fmt.Sprintf("%s is %v, not RFC 3339", at, e))
			}
			if s, ok := e.(string); ok && timeText.MatchString(s) {
				if _, err := time.Parse(time.RFC3339Nano, s); err != nil {
					bad = append(bad, fmt.Sprintf("%s is %q, not RFC 3339", at, s))
				}
			}
			if o, ok := e.(map[string]any); ok && name == "status" && o["type"] == "notLoaded" || name == "status" && e == "inProgress" {
				bad = append(bad, fmt.Sprintf("%s is %v, a word of the contract", at, e))
			}
			if !documents[name] {
				bad = append(bad, styleOf(e, at)...)
			}
		}
	}
	return bad
}
