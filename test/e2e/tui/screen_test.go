package tui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// screen is a real Codex TUI in a terminal of its own.
type screen struct {
	t      testing.TB
	tmux   string
	socket string
	home   string
	work   string
}

// config keeps the TUI quiet: no updates, no network, a trusted directory.
const config = `check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[tui]
animations = false
show_tooltips = false
[notice]
hide_full_access_warning = true
[projects.%q]
trust_level = "trusted"
`

// open starts the TUI with further arguments.
func open(t testing.TB, env []string, args ...string) *screen {
	t.Helper()
	return show(t, env, append([]string{lab.Codex(t)}, args...)...)
}

// show runs a program that ends up as the TUI, in a directory of its own.
func show(t testing.TB, env []string, program ...string) *screen {
	t.Helper()
	return showIn(t, t.TempDir(), env, program...)
}

// showIn is show in a directory that others may be in too.
func showIn(t testing.TB, work string, env []string, program ...string) *screen {
	t.Helper()
	s := &screen{t: t, tmux: lab.Tmux(t), socket: filepath.Join(t.TempDir(), "tmux"), home: t.TempDir(), work: work}
	dir := filepath.Join(s.home, ".codex")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), fmt.Appendf(nil, config, s.work), 0o600); err != nil {
		t.Fatal(err)
	}
	line := []string{"env", "-i", "HOME=" + s.home, "PATH=/usr/bin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8"}
	line = append(append(line, env...), program...)
	// What a TUI that ended has said stays on the screen.
	conf := filepath.Join(s.home, "tmux.conf")
	if err := os.WriteFile(conf, []byte("set -g remain-on-exit on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run("-f", conf, "new-session", "-d", "-x", "120", "-y", "50", "-c", s.work, quote(line))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen at the end:\n%s", s.text())
		}
		s.kill()
	})
	return s
}

func quote(args []string) string {
	for i, a := range args {
		args[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(args, " ")
}

func (s *screen) run(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(s.tmux, append([]string{"-S", s.socket}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + s.home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// kill ends the terminal and what runs in it.
func (s *screen) kill() {
	cmd := exec.Command(s.tmux, "-S", s.socket, "kill-server")
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	_ = cmd.Run()
}

// text is what a user sees, scrolled-off lines included.
func (s *screen) text() string {
	cmd := exec.Command(s.tmux, "-S", s.socket, "capture-pane", "-p", "-S", "-2000")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	out, _ := cmd.Output()
	return strings.TrimRight(string(out), "\n ")
}

// rests waits for the end of the turn that said a text: the text comes before it.
func (s *screen) rests(said string) {
	s.t.Helper()
	s.until("the end of the turn", func(shown string) bool {
		return strings.LastIndex(shown, "Worked for") > strings.LastIndex(shown, said)
	})
}

// wait polls the screen, which has no way to signal a change, until it shows all
// of the texts.
func (s *screen) wait(texts ...string) string {
	s.t.Helper()
	return s.until(fmt.Sprintf("the texts %q", texts), func(shown string) bool {
		for _, t := range texts {
			if !strings.Contains(shown, t) {
				return false
			}
		}
		return true
	})
}

func (s *screen) until(what string, ok func(string) bool) string {
	s.t.Helper()
	shown := ""
	poll.Until(s.t, what, func() bool { shown = s.text(); return ok(shown) })
	return shown
}

// say types a line and sends it. The prompt takes a pasted text at once.
func (s *screen) say(text string) {
	s.t.Helper()
	s.run("send-keys", "-l", text)
	s.until("what was typed", func(shown string) bool { return strings.Contains(squeeze(shown), squeeze(text)) })
	s.keys("Enter")
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.run(append([]string{"send-keys"}, keys...)...)
}

// squeeze leaves out white space: the terminal wraps lines where it likes.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }
