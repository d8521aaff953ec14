package pipeline

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// Where agents cannot be kept apart from the machine they do not run, and the turn
// says why and what helps. A person can type that they shall run all the same; then
// every surface says so.
func TestAgentsRunInABoxOrNotAtAll(t *testing.T) {
	t.Parallel()
	none := t.TempDir()
	denied, err := os.MkdirTemp("", "denied")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(denied) })
	if err := os.WriteFile(filepath.Join(denied, "bwrap"), []byte("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(denied, 0o755); err != nil {
		t.Fatal(err)
	}
	const try = "sim: run echo it ran"
	for name, c := range map[string]struct{ path, why, helps string }{
		"not installed": {none, "bubblewrap is not installed", "apt-get install bubblewrap"},
		"forbidden":     {denied, "No permissions to create new namespace", "user namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			r := up(t, "PATH="+c.path)
			s := r.session(t, "test")
			run := s.start(try, "")
			got := s.settle(run, "failed")
			if got.Error == nil || !strings.Contains(got.Error.Message, c.why) || !strings.Contains(got.Error.Hint, c.helps) {
				t.Errorf("the turn says %+v", got.Error)
			}
			if strings.Contains(s.said(run), "it ran") {
				t.Error("the agent ran without walls")
			}
			if f := r.doctor(t, "PATH="+c.path); f.OK || !strings.Contains(f.Problem, c.why) || f.Fix == "" {
				t.Errorf("the doctor says %+v", f)
			}
		})
	}
	t.Run("typed", func(t *testing.T) {
		r := up(t, "PATH="+none+":/bin", "THOLE_EXECUTOR_ISOLATION=none")
		if !strings.Contains(r.warning, "executor.isolation = none") {
			t.Errorf("up warns of %q", r.warning)
		}
		s := r.session(t, "test")
		for range 2 {
			run := s.start(try, "")
			s.settle(run, "completed")
			s.shows(run, func(it item) bool {
				return it.Kind == "system" && strings.Contains(it.Text, "executor.isolation = none")
			})
			if said := s.said(run); !strings.Contains(said, "it ran") {
				t.Errorf("the turn says %q", said)
			}
		}
		if f := r.doctor(t, "PATH="+none, "THOLE_EXECUTOR_ISOLATION=none"); f.OK || !strings.Contains(f.Problem, "none") {
			t.Errorf("the doctor says %+v", f)
		}
	})
}

type finding struct {
	Part, Problem, Fix string
	OK                 bool
}

// doctor is what the doctor says about isolation.
func (r *rig) doctor(t *testing.T, settings ...string) finding {
	t.Helper()
	cmd := exec.Command(lab.Thole(t), "doctor", "--json")
	cmd.Env = append([]string{"HOME=" + r.home, "THOLE_HOME=" + r.home}, settings...)
	out, _ := cmd.Output() // it may have more to complain about
	var list []finding
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range list {
		if f.Part == "isolation" {
			return f
		}
	}
	t.Fatalf("nothing about isolation: %s", out)
	return finding{}
}
