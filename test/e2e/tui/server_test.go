package tui

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// teamServer is a `thole serve` on PostgreSQL with one user, and that user's own machine.
type teamServer struct {
	t     *testing.T
	base  string
	dir   string // the home directory of the user, elsewhere
	bin   string
	http  http.Client
	proof string
}

func newTeamServer(t *testing.T) *teamServer {
	t.Helper()
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	file := filepath.Join(t.TempDir(), "team.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "[store]\nurl = %q\n[http]\nlisten = \"127.0.0.1:0\"\n", lab.Postgres(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := h.Command("serve", "--demo", "--json", "--config", file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var page struct{ Base, Setup string }
	if err != nil || json.Unmarshal(line, &page) != nil || page.Setup == "" {
		t.Fatalf("thole serve printed %q: %v", line, err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &teamServer{t: t, base: page.Base, dir: t.TempDir(), bin: h.Binary, http: http.Client{Jar: jar}}
	_, code, _ := strings.Cut(page.Setup, "#code=")
	var in struct{ Proof string }
	if err := json.Unmarshal(s.post("/auth/account", map[string]any{"code": code, "login": "root", "password": "correct horse battery"}), &in); err != nil || in.Proof == "" {
		t.Fatalf("set up: %v", err)
	}
	s.proof = in.Proof
	return s
}

func (s *teamServer) post(path string, body any) []byte {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.base+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Thole-Proof", s.proof)
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		s.t.Fatalf("%s: %d %s, %v", path, res.StatusCode, answer, err)
	}
	return answer
}

// env is the environment of the user's machine: it has no home of thole's.
func (s *teamServer) env() []string { return []string{"PATH=/usr/bin:/bin", "HOME=" + s.dir} }

func (s *teamServer) thole(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(s.bin, args...)
	cmd.Env, cmd.Dir = s.env(), s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("thole %v: %v %s", args, err, out)
	}
	return string(out)
}

// login lets the user's machine in with a code that the user confirms in the browser.
func (s *teamServer) login() {
	s.t.Helper()
	cmd := exec.Command(s.bin, "login", "--server", s.base)
	cmd.Env, cmd.Dir = s.env(), s.dir
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	code := ""
	for lines := bufio.NewScanner(errs); code == "" && lines.Scan(); {
		code = regexp.MustCompile(`[A-Z]{4}-[A-Z]{4}$`).FindString(strings.TrimSpace(lines.Text()))
	}
	s.post("/auth/devices/"+code, map[string]any{"confirm": true})
	_, _ = io.Copy(io.Discard, errs)
	if err := cmd.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// tui opens the real TUI as the user does, on a machine elsewhere.
func (s *teamServer) tui(t *testing.T, args ...string) *screen {
	t.Helper()
	return show(t, []string{"XDG_CONFIG_HOME=" + filepath.Join(s.dir, ".config")}, append([]string{s.bin, "tui", "--codex", lab.Codex(t)}, args...)...)
}

// A user logs in to a team server with a code and works there in the real TUI, on threads of all three
// agents and a new one. Nothing of it is on their own machine, and with the token the TUI ends.
func TestTerminalOnATeamServer(t *testing.T) {
	s := newTeamServer(t)
	s.login()
	t.Run("agents", func(t *testing.T) {
		for _, agent := range []string{"codex", "claude", "opencode"} {
			t.Run(agent, func(t *testing.T) {
				t.Parallel()
				out := s.thole("thread", "start", "--empty", "--profile", "ask", "--model", models[agent], first)
				c := s.tui(t, strings.Fields(out)[1])
				c.wait("• made by a script")
				c.say("sim: run echo asked > asked.txt ;; say asked once")
				c.wait("Yes, proceed")
				c.keys("y")
				c.wait("• asked once")
				c.rests("• asked once")
				c.say("sim: ask Which colour? | red | green ;; say you chose %tool%")
				c.wait("1. red", "2. green")
				c.keys("2", "Enter")
				c.wait("• you chose")
				c.rests("• you chose")
				c.say("sim: say begun ;; hang")
				c.wait("• begun")
				c.keys("Escape")
				c.wait("Conversation interrupted")
				c.say("sim: say still here")
				c.wait("• still here")
			})
		}
	})
	c := s.tui(t)
	c.wait("Codex default · /workspace")
	c.say("sim: say from a new thread")
	c.wait("• from a new thread")
	c.rests("• from a new thread")
	if out := s.thole("thread", "list"); strings.Count(out, "\n") < 4 {
		t.Errorf("the threads: %s", out)
	}
	if _, err := os.Stat(filepath.Join(s.dir, ".thole")); err == nil {
		t.Error("the user's machine has a home")
	}
	s.thole("logout")
	c.wait("econnect") // in vain
}
