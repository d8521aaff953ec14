package channel

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
	"github.com/tholehq/thole/internal/testkit/poll"
)

var binary string

func TestMain(m *testing.M) {
	if dir := os.Getenv(mortal); dir != "" {
		os.Exit(asThole(dir, os.Args[1:]))
	}
	if args := os.Getenv(asPlugin); args != "" {
		runPlugin(args)
	}
	var err error
	if binary, err = lab.BuiltThole(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// desk is a user: a thole home, a Codex home with the scripted model, a directory
// and a terminal.
type desk struct {
	t     *testing.T
	sim   *modelsim.Sim
	root  string
	codex string
	tmux  string
}

const tuiConfig = `
approval_policy = "never"
sandbox_mode = "read-only"
[tui]
animations = false
show_tooltips = false
[notice]
hide_full_access_warning = true
[projects.%q]
trust_level = "trusted"
`

func newDesk(t *testing.T) *desk {
	t.Helper()
	root, err := os.MkdirTemp("", "desk")
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, sim: modelsim.Start(t), root: root, codex: lab.Codex(t), tmux: lab.Tmux(t)}
	for _, dir := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := modelsim.CodexConfig(d.path("codex"), d.sim.URL()); err != nil {
		t.Fatal(err)
	}
	// Top-level keys must come before the first table.
	file := d.path("codex", "config.toml")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	top, tables, _ := strings.Cut(fmt.Sprintf(tuiConfig, d.path("work")), "[tui]")
	if err := os.WriteFile(file, []byte(top+string(old)+"\n[tui]"+tables), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		// The daemon notices that the terminals are gone and ends their servers.
		d.until("the servers to end", func() bool {
			for _, s := range d.sessions() {
				if s.Alive {
					return false
				}
			}
			return true
		})
		if out, err := d.try("daemon", "stop"); err != nil {
			t.Logf("daemon stop: %v: %s", err, out)
		}
		os.RemoveAll(root)
	})
	return d
}

func (d *desk) path(p ...string) string { return filepath.Join(append([]string{d.root}, p...)...) }

func (d *desk) env() []string {
	return []string{
		"HOME=" + d.path("home"), "THOLE_HOME=" + d.path("thole"), "CODEX_HOME=" + d.path("codex"), "TMPDIR=" + d.root,
		"THOLE_DELIVERY_MIN_INTERVAL=100ms",
		"PATH=" + filepath.Dir(d.codex) + ":/usr/bin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8",
	}
}

func (d *desk) try(args ...string) (string, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = d.env(), d.path("work")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *desk) thole(into any, args ...string) {
	d.t.Helper()
	cmd := exec.Command(binary, append(args, "--json")...)
	cmd.Env, cmd.Dir = d.env(), d.path("work")
	out, err := cmd.Output()
	if err != nil {
		var said []byte
		if e, ok := err.(*exec.ExitError); ok {
			said = e.Stderr
		}
		d.t.Fatalf("thole %v: %v: %s%s", args, err, out, said)
	}
	if into != nil {
		if err := json.Unmarshal(out, into); err != nil {
			d.t.Fatalf("thole %v: %v: %s", args, err, out)
		}
	}
}

// terminal runs a command line in tmux.
func (d *desk) terminal(args ...string) {
	d.t.Helper()
	line := append(append([]string{"env", "-i"}, d.env()...), args...)
	for i, a := range line {
		line[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	d.run("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "50", "-c", d.path("work"), strings.Join(line, " "))
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.t.Logf("the screen at the end:\n%s", d.screen())
		}
	})
}

func (d *desk) run(args ...string) string {
	d.t.Helper()
	cmd := exec.Command(d.tmux, append([]string{"-S", d.path("tmux")}, args...)...)
	cmd.Env = d.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (d *desk) kill() {
	cmd := exec.Command(d.tmux, "-S", d.path("tmux"), "kill-server")
	cmd.Env = d.env()
	_ = cmd.Run()
}

func (d *desk) screen() string {
	cmd := exec.Command(d.tmux, "-S", d.path("tmux"), "capture-pane", "-p", "-S", "-2000")
	cmd.Env = d.env()
	out, _ := cmd.Output()
	return strings.TrimRight(string(out), "\n ")
}

// shows polls the screen, which signals no change.
func (d *desk) shows(text string) {
	d.t.Helper()
	d.until("the screen to show "+text, func() bool { return strings.Contains(d.screen(), text) })
}

func (d *desk) until(what string, ok func() bool) {
	d.t.Helper()
	poll.Until(d.t, what, ok)
}

// say types a line into the terminal and sends it.
func (d *desk) say(text string) {
	d.t.Helper()
	d.run("send-keys", "-l", text)
	d.until("what was typed", func() bool {
		return strings.Contains(strings.Join(strings.Fields(d.screen()), ""), strings.Join(strings.Fields(text), ""))
	})
	d.run("send-keys", "Enter")
}

type session struct {
	ID      string `json:"managed_session_id"`
	State   string `json:"state"`
	Thread  string `json:"bound_thread_id"`
	Problem string `json:"problem"`
	Drift   string `json:"drift"`
	Address string `json:"address"`
	Alive   bool   `json:"server_alive"`
}

func (d *desk) sessions(args ...string) (list []session) {
	d.t.Helper()
	d.thole(&list, append([]string{"codex", "sessions", "list"}, args...)...)
	return list
}

// job finishes outside work for a thread with a result.
func (d *desk) job(target, thread, result string) {
	d.t.Helper()
	var j struct {
		JobID string `json:"job_id"`
	}
	d.thole(&j, "job", "submit", "--target", target, "--thread-id", thread, "--summary", "outside work")
	d.thole(nil, "job", "complete", "--job-id", j.JobID, "--summary", result)
}

type batch struct {
	Thread      string `json:"source_thread_id"`
	CloseReason string `json:"close_reason"`
	HeldFor     string `json:"held_for"`
	Attempts    int    `json:"delivery_attempt_count"`

	Next []string `json:"next"`
}

// fate waits for the end of the only batch.
func (d *desk) fate() batch {
	d.t.Helper()
	var all []batch
	d.until("the batch to end", func() bool {
		all = nil
		d.thole(&all, "batch", "list")
		return len(all) == 1 && (all[0].CloseReason != "" || all[0].HeldFor != "")
	})
	return all[0]
}
