package desktop

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// outputs are what commands printed, as the rollout files of the real CLI have it.
func (a *app) outputs() (all []string) {
	a.t.Helper()
	err := filepath.WalkDir(filepath.Join(a.codex, "sessions"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), "rollout-") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			var line struct {
				Type    string `json:"type"`
				Payload struct {
					Type   string          `json:"type"`
					Output json.RawMessage `json:"output"`
				} `json:"payload"`
			}
			if json.Unmarshal(s.Bytes(), &line) == nil && line.Type == "response_item" && strings.HasSuffix(line.Payload.Type, "call_output") {
				all = append(all, string(line.Payload.Output))
			}
		}
		return s.Err()
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return all
}

// In the sandbox of the real CLI a helper reads the inbox's files, and its output is in the
// rollout; what needs the daemon's socket gets nothing there, and so arms nothing.
func TestHelpersInTheRealSandbox(t *testing.T) {
	a := newApp(t)
	a.validate()
	a.job("done")
	s := a.wake()
	sim := modelsim.Start(t)
	if err := modelsim.CodexConfig(a.codex, sim.URL()); err != nil {
		t.Fatal(err)
	}
	turn := func(args ...string) string {
		t.Helper()
		had := len(a.outputs())
		line := a.Binary + " --json desktop " + strings.Join(args, " ") + "; echo exit=$?"
		cmd := exec.Command(lab.Codex(t), "exec", "--skip-git-repo-check", "-s", "read-only", "-C", a.codex, "sim: run "+line)
		cmd.Env = append(a.Env(), "TMPDIR="+t.TempDir()) // it makes no helpers in a home below that
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("codex: %v: %s", err, out)
		}
		all := a.outputs()
		if len(all) <= had {
			t.Fatal("the rollout has no output of the command")
		}
		return strings.Join(all[had:], "\n")
	}
	if err := os.MkdirAll(filepath.Join(a.codex, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out := turn("read-snapshot", "--expected-revision", strconv.FormatInt(s.Revision, 10)); !strings.Contains(out, s.Ready[0].Attempt) || !strings.Contains(out, "exit=0") {
		t.Errorf("read-snapshot printed %s", out)
	}
	before := a.manifest()
	if out := turn("bridge-preflight", "--bridge-thread-id", bridge); !strings.Contains(out, "exit=7") { // unavailable
		t.Errorf("a preflight in the sandbox: %s", out)
	}
	if a.manifest() != before {
		t.Error("a preflight that failed published something")
	}
}

func (a *app) manifest() string {
	a.t.Helper()
	body, err := os.ReadFile(filepath.Join(a.Dir, "inbox", "current-snapshot.json"))
	if err != nil {
		a.t.Fatal(err)
	}
	return string(body)
}
