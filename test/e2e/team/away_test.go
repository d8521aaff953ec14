package team

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// away is a user's own machine, from which commands go to the server.
type away struct {
	t   *testing.T
	dir string
	bin string
}

func (a *away) command(args ...string) *exec.Cmd {
	cmd := exec.Command(a.bin, args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.dir}, a.dir
	return cmd
}

func (a *away) run(want int, args ...string) (out, errs string) {
	a.t.Helper()
	cmd := a.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		a.t.Errorf("thole %v: exit %d, want %d: %s%s", args, got, want, &o, &e)
	}
	return o.String(), e.String()
}

var shown = regexp.MustCompile(`[A-Z]{4}-[A-Z]{4}$`)

// login begins one and returns the code that it shows, and its end.
func (a *away) login(s *server) (code string, end func() error) {
	a.t.Helper()
	cmd := a.command("login", "--server", s.base)
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	lines := bufio.NewScanner(errs)
	for code == "" && lines.Scan() {
		code = shown.FindString(strings.TrimSpace(lines.Text()))
	}
	return code, func() error { _, _ = io.Copy(io.Discard, errs); return cmd.Wait() }
}

// A user logs in from another machine with a code, works there with commands, an editor
// and nothing else of the server's, and logs out.
func TestCommandsFromAnotherMachine(t *testing.T) {
	const word = "correct horse battery"
	h := home.New(t)
	s := serve(t, h, "--config", configured(t, h.Dir, lab.Postgres(t), nil, "", ""))
	_, code, _ := strings.Cut(s.set, "#code=")
	root := s.enter("/auth/account", map[string]any{"code": code, "login": "root", "password": word})
	_, made := s.send(root, "/methods", map[string]any{"method": "thole/user/add", "params": map[string]any{"login": "ada"}})
	_, code, _ = strings.Cut(made["url"].(string), "#code=")
	ada := s.enter("/auth/account", map[string]any{"code": code, "password": word})
	a := &away{t, t.TempDir(), h.Binary}
	if _, errs := a.run(6, "login", "--server", "http://thole.example.org"); !strings.Contains(errs, "https://thole.example.org") {
		t.Errorf("a token over plain http: %s", errs)
	}
	if _, errs := a.run(6, "--server", s.base, "thread", "list"); !strings.Contains(errs, "thole login --server") {
		t.Errorf("before the login: %s", errs)
	}

	refused, end := a.login(s)
	if status, out := s.send(ada, "/auth/devices/"+refused, map[string]any{"confirm": false}); status != 204 {
		t.Errorf("refuse: %d %v", status, out)
	}
	if end() == nil {
		t.Error("a login that was refused is in")
	}
	shownCode, end := a.login(s)
	if status, out := s.send(fresh(), "/auth/devices/"+shownCode, map[string]any{"confirm": true}); status != 401 {
		t.Errorf("confirmed by nobody: %d %v", status, out)
	}
	if status, out := s.send(ada, "/auth/devices/"+strings.ToLower(shownCode), map[string]any{"confirm": true}); status != 204 {
		t.Fatalf("confirm: %d %v", status, out)
	}
	if status, _ := s.send(root, "/auth/devices/"+shownCode, map[string]any{"confirm": true}); status != 404 {
		t.Errorf("a code works twice: %d", status)
	}
	if err := end(); err != nil {
		t.Fatalf("login: %v", err)
	}
	file := filepath.Join(a.dir, ".config/thole/servers.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of logins: %v, %v", info, err)
	}

	out, _ := a.run(0, "run", "--json", "sim: say hello from afar")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		Ran struct {
			Thread string `json:"thread_id"`
		} `json:"ran"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Ran.Thread == "" || !strings.Contains(out, "hello from afar") {
		t.Fatalf("run: %s", out)
	}
	if got := s.status(ada, "/sessions/"+last.Ran.Thread); got != 200 {
		t.Errorf("ada does not see her thread: %d", got)
	}
	if got := s.status(s.login(), "/sessions/"+last.Ran.Thread); got != 404 {
		t.Errorf("another user sees it: %d", got)
	}
	if out, _ := a.run(0, "thread", "list"); !strings.Contains(out, last.Ran.Thread) {
		t.Errorf("thread list: %s", out)
	}
	if out, _ := a.run(0, "thread", "send", last.Ran.Thread[:13], "sim: say again"); !strings.Contains(out, "again") {
		t.Errorf("thread send: %s", out)
	}
	a.run(0, "job", "list")
	a.run(0, "usage")
	a.run(0, "budget", "list")
	for _, of := range [][]string{{"run", "--here", "x"}, {"audit", "list"}, {"thread", "terminal", last.Ran.Thread}, {"secret", "list"}} {
		if cmd := a.command(of...); true {
			text, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() == 0 || !strings.Contains(string(text), "team server") {
				t.Errorf("%v: %s", of, text)
			}
		}
	}
	if _, errs := a.run(6, "audit", "list", "--chain"); !strings.Contains(errs, "right to read_audit") {
		t.Errorf("who may not reads the chain: %s", errs)
	}
	if _, err := os.Stat(filepath.Join(a.dir, ".thole")); err == nil {
		t.Error("a command for the server made a home")
	}
	a.edit("sim: say hello from an editor")

	token, _ := os.ReadFile(file)
	a.run(0, "logout")
	if left, _ := os.ReadFile(file); bytes.Contains(left, []byte("thole_")) {
		t.Errorf("the token stays after the logout: %s", left)
	}
	secret := regexp.MustCompile(`thole_[A-Za-z0-9_-]+`).FindString(string(token))
	if got := s.with(secret, "/sessions"); secret == "" || got != 401 {
		t.Errorf("the token works after the logout: %d", got)
	}
}

// edit is an editor that speaks the Agent Client Protocol with thole acp.
func (a *away) edit(say string) {
	a.t.Helper()
	cmd := a.command("acp")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	ask := func(id int, method string, params any) (result map[string]any, seen string) {
		text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		_, _ = in.Write(append(text, '\n'))
		for lines.Scan() {
			var m struct {
				ID     json.Number    `json:"id"`
				Method string         `json:"method"`
				Result map[string]any `json:"result"`
				Error  any            `json:"error"`
			}
			seen += lines.Text()
			if json.Unmarshal(lines.Bytes(), &m) == nil && m.Method == "" {
				if m.Error != nil {
					a.t.Fatalf("%s: %v", method, m.Error)
				}
				return m.Result, seen
			}
		}
		a.t.Fatalf("%s: no answer", method)
		return nil, ""
	}
	ask(1, "initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	session, _ := ask(2, "session/new", map[string]any{"cwd": a.dir, "mcpServers": []any{}})
	_, seen := ask(3, "session/prompt", map[string]any{"sessionId": session["sessionId"], "prompt": []any{map[string]any{"type": "text", "text": say}}})
	if !strings.Contains(seen, strings.TrimPrefix(say, "sim: say ")) {
		a.t.Errorf("the editor is shown %s", seen)
	}
}
