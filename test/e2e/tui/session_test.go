package tui

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// session is one user in front of the installed TUI, in a repository of their own.
type session struct {
	*screen
	agent  string // codex, claude or opencode; codex alone has no thread
	thread string
	dir    string
	shots  []string // what the screen showed for the row that runs
}

// alone is the agent of a session that does without thole.
const alone = "codex alone"

// started opens a session on a new thread of an agent. Every frame between the TUI and
// thole is checked against the schema of the installed codex.
func started(t *testing.T, h *home.Home, agent string) *session {
	t.Helper()
	c := &session{agent: agent, dir: repository(t)}
	out, errs, code := h.Run("thread", "start", "--here", "-C", c.dir, "--profile", "ask", "--model", models[agent], first)
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	c.thread = strings.Fields(out)[1]
	c.screen = showIn(t, c.dir, nil, lab.Codex(t), "resume", c.thread, "--remote", checkedAddress(t, h))
	c.wait("• made by a script")
	return c
}

// models of the agents. Claude Code offers its list of tasks only to one it knows by name.
var models = map[string]string{"codex": "codex/default", "claude": "claude/" + modelsim.ClaudeModel, "opencode": "opencode/default"}

// first is the message that made the thread.
const first = "sim: say made by a script"

// byItself opens the TUI with the scripted model and nothing between them.
func byItself(t *testing.T) *session {
	t.Helper()
	c := &session{agent: alone, dir: repository(t)}
	own, err := os.MkdirTemp("/var/tmp", "alone") // codex wants no home under /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		poll.Until(t, "the end of codex's own server", func() bool {
			left, err := process.Marked("CODEX_HOME=" + own)
			for _, p := range left {
				_ = syscall.Kill(p, syscall.SIGKILL)
			}
			return err == nil && len(left) == 0
		})
		_ = os.RemoveAll(own)
	})
	if err := modelsim.CodexConfig(own, modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(own, "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "[tui]\nanimations = false\nshow_tooltips = false\n[projects.%q]\ntrust_level = \"trusted\"\n", c.dir); err != nil {
		t.Fatal(err)
	}
	c.screen = showIn(t, c.dir, []string{"CODEX_HOME=" + own}, lab.Codex(t), "-a", "on-request", "-s", "read-only")
	c.wait("Scripted model")
	c.say(first)
	c.wait("• made by a script")
	return c
}

// working is what the TUI shows while a turn runs.
const working = "esc to interrupt"

// keep masks what differs from run to run. The prompt and what is below it is left out.
func (c *session) keep(since, shown string) {
	if i := strings.LastIndex(shown, since); i >= 0 {
		shown = shown[i:]
	}
	if i := strings.LastIndex(shown, "\n› "); i >= 0 && !strings.HasPrefix(shown[i:], "\n› 1. ") {
		shown = shown[:i]
	}
	shown = strings.ReplaceAll(shown, c.dir, "DIR")
	for _, m := range masks {
		shown = m.what.ReplaceAllString(shown, m.by)
	}
	var lines []string
	for line := range strings.Lines(shown) {
		line = strings.TrimRight(line, " \n")
		if line != "" && !strings.Contains(line, "continue without running it") { // codex alone does not offer it
			lines = append(lines, line)
		}
	}
	c.shots = append(c.shots, strings.Join(lines, "\n"))
}

var masks = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b(\d+m )?\d+s\b`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`Worked for .*`), "Worked for TIME"},
	{regexp.MustCompile(`(?m)^([› ]+)\d\. `), "${1}N. "},
}

// has compares a file of the repository; no text means no file.
func (c *session) has(name, want string) {
	c.t.Helper()
	got, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil && !os.IsNotExist(err) || string(got) != want {
		c.t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

// exists waits for a file of the repository.
func (c *session) exists(name string) {
	c.t.Helper()
	c.until(name, func(string) bool { _, err := os.Stat(filepath.Join(c.dir, name)); return err == nil })
}

// touch makes one, outside of what git sees.
func (c *session) touch(name string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), nil, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// attach pastes the path of a picture into the prompt.
func (c *session) attach() {
	c.t.Helper()
	picture := filepath.Join(c.dir, ".git", "dot.png")
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(picture, b.Bytes(), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.run("set-buffer", picture)
	c.run("paste-buffer", "-p")
	c.wait("[Image #1]")
}
