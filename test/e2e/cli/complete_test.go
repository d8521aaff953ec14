//go:build linux

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// Tab completes ids, models, profiles and reasons in the shells themselves, as they come:
// bash without the package bash-completion.
func TestCompletionInRealShells(t *testing.T) {
	r := newRig(t)
	r.must("run", "-q", "--model", "test/script", "--name", "Paint the wall", "sim: say done")
	var job struct {
		JobID string `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(r.must("--json", "job", "submit", "--target", "desktop", "--thread-id", "t", "--task-kind", "ci", "--summary", "unit tests")), &job); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(r.Binary, filepath.Join(bin, "thole")); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []struct {
		name, begin string
		args        []string
	}{
		{"bash", "source <(thole completion bash)", []string{"--norc", "--noprofile", "-i"}},
		{"zsh", "autoload -U compinit; compinit -D -u; source <(thole completion zsh)", []string{"-f", "-i"}},
		{"fish", "thole completion fish | source", []string{"--no-config", "-i"}},
	} {
		t.Run(shell.name, func(t *testing.T) {
			r := r.of(t)
			cmd := exec.Command(lab.Shell(t, shell.name), shell.args...)
			cmd.Env = append(r.Env(), "PATH="+bin+":/usr/bin:/bin")
			s := r.sitAt(200, cmd)
			s.types(shell.begin + "; echo re''ady\r")
			s.sees("ready")
			for _, c := range []struct{ typed, want string }{
				{"thole thread show paint-the-w", "thole thread show paint-the-wall-"},
				{"thole run --model test/s", "thole run --model test/script"},
				{"thole run --model=test/s", "thole run --model=test/script"},
				{"thole run --profile pl", "thole run --profile plan"},
				{"thole batch close-head --reason operator_con", "thole batch close-head --reason operator_confirmed_delivery"},
				{"thole job query " + job.JobID[:len(job.JobID)-2], "thole job query " + job.JobID},
			} {
				// The completed line is printed: the beginning of the line is C-a in all of them.
				s.types(c.typed + "\t\x01echo 'now:' \r")
				s.sees("now: " + c.want)
			}
			if strings.Contains(s.all(), "not found") {
				t.Errorf("the script wants what is not there")
			}
			s.types("exit\r")
			<-s.done
		})
	}
}
