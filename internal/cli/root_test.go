package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/version"
)

func run(args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = Main(args, strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

// twoWords is a flag in a usage text whose value has a space in its name.
var twoWords = regexp.MustCompile(`--[\w-]+ \S+ \S+`)

// Every command says what it is for, and nonsense after it is refused before
// anything happens.
func TestEveryCommand(t *testing.T) {
	t.Setenv("THOLE_HOME", t.TempDir()+"/home")
	open := []string{"thole help", "thole codex run", "thole job run", "thole job supervise", "thole job wait"} // take any arguments
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		if !c.Hidden && c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("thole %s is described as %q", strings.Join(path, " "), c.Short)
		}
		if use := c.UseLine(); strings.Contains(use, " -- ") && strings.HasSuffix(use, "[flags]") {
			t.Errorf("%s: flags after -- belong to the command", use)
		}
		if words := twoWords.FindString(c.Flags().FlagUsages()); words != "" {
			t.Errorf("thole %s: %s…: a value is one word", strings.Join(path, " "), words)
		}
		for _, sub := range c.Commands() {
			walk(sub, append(path[:len(path):len(path)], sub.Name()))
		}
		if c.HasSubCommands() {
			if c.CommandPath() == "thole exec" { // any word is a prompt, as in Codex
				return
			}
			if _, errs, code := run(append(path, "no-such-command")...); code != 2 || !strings.Contains(errs, "no-such-command") {
				t.Errorf("thole %s no-such-command: exit %d: %s", strings.Join(path, " "), code, errs)
			}
			return
		}
		if c.DisableFlagParsing || len(path) == 0 {
			return
		}
		if many := append(path[:len(path):len(path)], "a", "b", "c", "d"); !slices.Contains(open, c.CommandPath()) {
			if _, errs, code := run(many...); code != 2 {
				t.Errorf("thole %s: exit %d: %s", strings.Join(many, " "), code, errs)
			}
		}
		args := append(path, "--no-such-flag", "--json")
		_, errs, code := run(args...)
		if code != 2 || !strings.Contains(errs, "no-such-flag") {
			t.Errorf("thole %s: exit %d: %s", strings.Join(args, " "), code, errs)
		}
	}
	walk(newRoot(&Env{}), nil)
	for name, make := range commands() {
		if c := make(&Env{}); c.Name() != name {
			t.Errorf("%s is listed as %s", c.Name(), name)
		}
	}
	if _, err := os.Stat(os.Getenv("THOLE_HOME")); !os.IsNotExist(err) {
		t.Errorf("a refused command made the home: %v", err)
	}
}

// What a command lacks is said with how it is used, as the user's mistake.
func TestMissingArguments(t *testing.T) {
	t.Setenv("THOLE_HOME", t.TempDir()+"/home")
	for _, args := range [][]string{{"thread", "show"}, {"thread", "send", "x"}, {"token", "create"}, {"codex", "attach"}, {"executor", "serve"}, {"db", "backup"}} {
		_, errs, code := run(args...)
		if use := "  try: thole " + strings.Join(args[:2], " "); code != 2 || !strings.Contains(errs, use) {
			t.Errorf("thole %s: exit %d: %s", strings.Join(args, " "), code, errs)
		}
	}
	for _, args := range [][]string{{"thread", "tail"}, {"thread", "queue"}, {"thread", "queue", "list"}} {
		if _, errs, code := run(args...); code != 2 || errs != "thole: which thread?\n  try: thole "+strings.Join(args, " ")+" --last takes the one that was used last; thole thread list shows all\n" {
			t.Errorf("thole %s: exit %d: %s", strings.Join(args, " "), code, errs)
		}
	}
	for line, want := range map[string]string{
		"run": "MESSAGE is missing", "thread rename x": "TITLE is missing", "thread rename --last": "TITLE is missing", "thread send --last": "MESSAGE is missing",
		"thread rename --last new name": `"name" is one argument too many: a title of several words stands in quotes`, "run fix it": `"it" is one argument too many: a message of several words stands in quotes`, "thread wait x y": `"y" is one argument too many`, "budget set": "SCOPE[:ID] is missing", "secret set": "NAME is missing",
		"thread archive x y": `"y" is one argument too many`, "version now": `"now" is one argument too many`,
	} {
		if _, errs, code := run(strings.Fields(line)...); code != 2 || !strings.HasPrefix(errs, "thole: "+want+"\n  try: thole ") {
			t.Errorf("thole %s: exit %d: %s", line, code, errs)
		}
	}
	if out, errs, code := run("help", "thread", "send"); code != 0 || !strings.Contains(out, "send THREAD MESSAGE") {
		t.Errorf("help: exit %d: %s", code, errs)
	}
	if _, errs, code := run("help", "thread", "sned"); code != 2 || !strings.Contains(errs, "sned") {
		t.Errorf("help of nothing: exit %d: %s", code, errs)
	}
	for _, text := range []string{"", " \n", "-"} {
		if _, errs, code := run("thread", "start", text); code != 2 || !strings.Contains(errs, "empty") {
			t.Errorf("a thread with the message %q: exit %d: %s", text, code, errs)
		}
	}
}

// Flags that exclude one another are refused by name, with what each of them does.
func TestFlagsThatExcludeOneAnother(t *testing.T) {
	t.Setenv("THOLE_HOME", t.TempDir()+"/home")
	for _, c := range []struct{ args, one, other string }{
		{"run --here --empty x", "--empty", "--here"}, {"run --repo r --here x", "--here", "--repo"}, {"run --ref r --here x", "--here", "--ref"},
		{"thread start --dirty --empty x", "--dirty", "--empty"}, {"thread apply x --check --abort", "--abort", "--check"},
		{"thread diff x --stat --name-only", "--name-only", "--stat"}, {"thread port x 80 --close --open", "--close", "--open"},
		{"thread close x --wait --no-wait", "--no-wait", "--wait"}, {"workspace export x y --wait --no-wait", "--no-wait", "--wait"},
	} {
		_, errs, code := run(strings.Fields(c.args)...)
		first, hint, _ := strings.Cut(errs, "\n")
		if code != 2 || first != "thole: "+c.one+" and "+c.other+" exclude each other" || !strings.HasPrefix(hint, "  try: choose one: "+c.one+" (") || !strings.Contains(hint, "), or "+c.other+" (") {
			t.Errorf("thole %s: exit %d: %s", c.args, code, errs)
		}
	}
}

// Scripts that call thole codex by its earlier name go on working; the help lists
// only the new one.
func TestCodexAnswersToItsEarlierName(t *testing.T) {
	if out, errs, code := run("cli", "sessions", "--help"); code != 0 || !strings.Contains(out, "thole codex sessions") {
		t.Errorf("thole cli sessions --help: exit %d: %s%s", code, out, errs)
	}
	if out, _, _ := run("--help"); !strings.Contains(out, "\n  codex ") || strings.Contains(out, "\n  cli ") {
		t.Errorf("thole --help:\n%s", out)
	}
}

func TestErrorsAreOneLineAndAHint(t *testing.T) {
	t.Setenv("THOLE_HOME", t.TempDir()+"/home")
	_, errs, code := run("login")
	if lines := strings.Split(strings.TrimSpace(errs), "\n"); code != 7 || len(lines) != 2 || !strings.HasPrefix(lines[0], "thole: ") || !strings.HasPrefix(lines[1], "  try: ") {
		t.Errorf("exit %d: %s", code, errs)
	}
	_, errs, _ = run("login", "--json")
	var got struct {
		Error struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal([]byte(errs), &got); err != nil || got.Error.Code != "unavailable" || got.Error.Message == "" || got.Error.Hint == "" {
		t.Errorf("with --json: %v %s", err, errs)
	}
}

// Each class of error has an exit code of its own row, and 1 is for faults of thole alone.
func TestExitCodes(t *testing.T) {
	b, err := os.ReadFile("../../docs/operate/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range ExitCodes() {
		if !strings.Contains(string(b), fmt.Sprintf("\n| %d | %s |", row.Number, row.Meaning)) {
			t.Errorf("exit code %d is not documented", row.Number)
		}
	}
	_, missing := os.Open("no such file")
	_, refused := net.Dial("tcp", "127.0.0.1:1")
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {errors.New("x"), 1}, {thole.Errorf(thole.CodeInternal, "x"), 1}, {thole.Errorf(thole.CodeInvalid, "x"), 2},
		{thole.Errorf(thole.CodeNotFound, "x"), 3}, {thole.Errorf(thole.CodeGone, "x"), 3}, {thole.Errorf(thole.CodeConflict, "x"), 4},
		{thole.Errorf(thole.CodeBudgetExceeded, "x"), 4}, {thole.Errorf(thole.CodeBusy, "x"), 5}, {thole.Errorf(thole.CodeOverloaded, "x"), 5}, {late.Err(), 5},
		{thole.Errorf(thole.CodeForbidden, "x"), 6}, {thole.Errorf(thole.CodeUnauthorized, "x"), 6}, {thole.Errorf(thole.CodeUnavailable, "x"), 7},
		{thole.Errorf(thole.CodeUnsupported, "x"), 7}, {missing, 7}, {refused, 7}, {thole.Errorf(thole.CodeHeld, "x"), 8}, {thole.Errorf(codeFailed, "x"), 9},
		{context.Canceled, 130}, {ExitError(42), 42},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit %d, want %d", c.err, got, c.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, errs, code := run("completion", shell); code != 0 || !strings.Contains(out, "thole") {
			t.Errorf("%s: exit %d: %s", shell, code, errs)
		}
	}
}

// --version is what version prints, with --json too.
func TestVersionFlag(t *testing.T) {
	for _, rest := range [][]string{nil, {"--json"}} {
		want, _, _ := run(append([]string{"version"}, rest...)...)
		for _, args := range [][]string{append([]string{"--version"}, rest...), append(rest[:len(rest):len(rest)], "--version")} {
			if out, errs, code := run(args...); code != 0 || out != want || !strings.Contains(out, version.Version) {
				t.Errorf("%v: exit %d: %q, want %q %s", args, code, out, want, errs)
			}
		}
	}
	if out, _, _ := run("--help"); !strings.Contains(out, "--version") {
		t.Errorf("help does not show it: %s", out)
	}
	if _, _, code := run("--version", "x"); code != 2 {
		t.Errorf("--version x: exit %d", code)
	}
}
