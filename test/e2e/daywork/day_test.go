//go:build linux

package daywork

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// step is one command of an agent's, and what it must print.
type step struct {
	name, command, want string
	need                []string // programs of this machine
	soak                bool     // only with THOLE_SOAK
	long                bool     // it may take longer than a CLI waits for a command
}

func (s *site) day() []step {
	return []step{
		{name: "clone", command: "git clone -q " + s.url + "/git/repo.git cloned && cat cloned/README", want: "cloned"},
		{name: "npm", need: []string{"npm"}, want: "installed",
			command: "mkdir web && cd web && npm init -y >/dev/null && npm install --no-audit --no-fund --registry " + s.url + "/npm/ left && node -p 'require(`left`)'"},
		{name: "serve", want: "", command: "mkdir served && echo hello > served/index.html && (setsid python3 -m http.server -d served 8123 >served.log 2>&1 &)"},
		{name: "reach", want: "hello",
			command: "for i in $(seq 100); do curl -sf http://127.0.0.1:8123/ && exit 0; sleep 0.1; done; exit 1", need: []string{"curl"}},
		{name: "debug", need: []string{"gcc", "gdb"}, want: "seen = 42",
			command: `printf 'int main(void) { int seen = 42; return seen - 42; }' > d.c && gcc -g -o d d.c && gdb -nx -batch -ex 'break 1' -ex run -ex next -ex 'info locals' ./d`},
		{name: "cargo", need: []string{"cargo"}, want: "1 passed", command: "cargo new -q --vcs none --lib rust && cd rust && cargo test -q"},
		{name: "venv", soak: true, want: "/workspace/v", command: "/usr/bin/python3 -m venv v && v/bin/pip --version && v/bin/python -c 'import sys; print(sys.prefix)'"},
		{name: "module", soak: true, command: `mkdir day && cd day && printf 'module example.com/day\ngo 1.20\nrequire example.com/dep v1.0.0\n' > go.mod && ` +
			`printf 'package day\nimport ("testing"; "example.com/dep")\nfunc TestWord(t *testing.T) { if dep.Word() != "fetched" { t.Fatal(dep.Word()) } }\n' > day_test.go`},
		{name: "go", soak: true, long: true, need: []string{"go"}, want: "ok  \texample.com/day",
			command: "cd day && GOTOOLCHAIN=local GOSUMDB=off GOFLAGS=-mod=mod GOPROXY=" + s.url + "/go go test -vet=off ./..."},
	}
}

// run is the step in the model's script.
func (s step) run() string {
	if s.long {
		return fmt.Sprintf("run (setsid sh -c \"(%s) > /workspace/%s.out 2>&1; echo \\$? > /workspace/%[2]s.code\" >/dev/null 2>&1 &) ;; ", s.command, s.name)
	}
	return fmt.Sprintf("run (%s) > %s.out 2>&1; echo $? > %[2]s.code ;; ", s.command, s.name)
}

// A day's work in the box: everything on one CLI, the clone on each. What takes long
// runs with THOLE_SOAK.
func TestADaysWork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := home.New(t)
	h.Vars = []string{
		"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t),
		"THOLE_EGRESS_PRIVATE=" + s.target, "THOLE_EGRESS_CA_FILE=" + s.ca, "THOLE_EXECUTOR_CPUS=0",
	}
	h.Up()
	if shown, errs, code := h.Run("executor", "paths"); code != 0 || !strings.Contains(shown, "/usr/bin") || !strings.Contains(shown, "of the system") {
		t.Errorf("executor paths: %s%s", shown, errs)
	}
	for agent, model := range map[string]string{"codex": modelsim.Model, "claude": "claude/" + modelsim.ClaudeModel, "opencode": "opencode/sim/" + modelsim.Model} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			steps := s.day()[:1]
			if agent == "claude" {
				steps = s.day()
			}
			work(t, h, s, model, steps)
		})
	}
}

// work has an agent run the steps in one turn, and looks at what each left.
func work(t *testing.T, h *home.Home, s *site, model string, steps []step) {
	t.Helper()
	script := ""
	for i, st := range steps {
		steps[i].soak = st.soak && os.Getenv("THOLE_SOAK") == ""
		for _, name := range st.need {
			if _, err := exec.LookPath(name); err != nil && !steps[i].soak {
				steps[i].soak = true
				t.Run(st.name, func(t *testing.T) { lab.Need(t, name, errors.New("not installed: scripts/lab install system")) })
			}
		}
		if !steps[i].soak {
			script += st.run()
		}
	}
	cmd := h.Command("thread", "start", "--model", model, "--profile", "full", "sim: "+script+"say done")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(10*time.Minute, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	late.Stop()
	f := strings.Fields(said.String())
	if err != nil || len(f) < 2 {
		t.Fatalf("the turn: %v\n%s", err, said.String())
	}
	workspaces, _ := filepath.Glob(filepath.Join(h.Dir, "x", "*", "workspace"))
	for _, st := range steps {
		if st.soak {
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			for _, dir := range workspaces {
				spec, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "spec.json"))
				if err != nil || !bytes.Contains(spec, []byte(f[1])) {
					continue
				}
				for end := time.Now().Add(10 * time.Minute); st.long && time.Now().Before(end); <-time.After(100 * time.Millisecond) {
					if _, err := os.Stat(filepath.Join(dir, st.name+".code")); err == nil {
						break
					}
				}
				out, _ := os.ReadFile(filepath.Join(dir, st.name+".out"))
				code, err := os.ReadFile(filepath.Join(dir, st.name+".code"))
				if err != nil || strings.TrimSpace(string(code)) != "0" || !strings.Contains(string(out), st.want) {
					t.Errorf("%s: %v, status %s\n%s", st.command, err, code, out)
				}
				return
			}
			t.Errorf("the thread %s has no executor\n%s", f[1], said.String())
		})
	}
	if reached, errs, _ := h.Run("thread", "network", f[1]); !strings.Contains(reached, strings.Split(s.target, ":")[0]) {
		t.Errorf("nothing went through the proxy: %s%s", reached, errs)
	}
}
