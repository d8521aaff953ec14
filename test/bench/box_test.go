//go:build linux

package bench

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/sandbox/seccomp"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// agent is a user of the machine as whom root's agents run.
const agent = "1900000001"

// TestBox: what a box costs a first program, and what it costs every other.
func TestBox(t *testing.T) {
	bwrap := lab.Bwrap(t)
	// Where the agent's user may run it.
	init := filepath.Join(lab.Open(t), "thole")
	program, err := os.Open(lab.Thole(t))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	copied, err := os.OpenFile(init, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(copied, program)
	}
	if err == nil {
		err = copied.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	command := func(argv ...string) (string, []string) {
		made := sandbox.Agents(true).Add("--seccomp", "4").Kernel().Add("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
			"--tmpfs", "/tmp", "--ro-bind", init, "/run/init", "--dir", "/workspace").Command("/workspace", argv...)
		if os.Getuid() == 0 {
			return "/usr/bin/setpriv", append([]string{"--reuid", agent, "--regid", agent, "--clear-groups", bwrap}, made...)
		}
		return bwrap, made
	}
	filter := func() *os.File {
		f, err := seccomp.Box.File()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ready := func() *box.Box {
		f := filter()
		defer f.Close()
		path, args := command(append([]string{"/run/init"}, box.InitArgs...)...)
		made, err := box.Start(t.Context(), box.Config{Path: path, Args: args, Files: []*os.File{f}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	times := 20
	if Long() {
		times = 100
	}
	each := func(once func() time.Duration) func() float64 {
		return func() float64 {
			took := make([]float64, times)
			for i := range took {
				took[i] = once().Seconds() * 1e3
			}
			return middle(took)
		}
	}
	Case{
		Name: "box: ready for the first program", Unit: "ms", Peer: "/bin/true in a bare bubblewrap with the same namespaces", Promise: 3, Loose: 6,
		Ours: each(func() time.Duration {
			began := time.Now()
			made := ready()
			took := time.Since(began)
			_ = made.Close()
			return took
		}),
		Theirs: each(func() time.Duration {
			f := filter()
			defer f.Close()
			began := time.Now()
			path, args := command("/bin/true")
			cmd := exec.Command(path, args...)
			cmd.ExtraFiles = []*os.File{f, f} // the filter is descriptor 4 on both sides
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			return time.Since(began)
		}),
		Note: "Until our init inside answers; the rest is the start of our own program, whose libraries initialise themselves. As root both drop to another user first.",
	}.Run(t)

	made := ready()
	defer made.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	Case{
		Name: "box: a program in a running box", Unit: "ms", Peer: "fork and exec (os/exec)", Promise: 1.5, Loose: 4,
		Ours: each(func() time.Duration {
			began := time.Now()
			child, err := made.Spawn(box.Command{Path: "/bin/true", Argv: []string{"true"}, Files: [3]*os.File{null, null, null}})
			if err == nil {
				_, err = child.Wait()
			}
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}),
		Theirs: each(func() time.Duration {
			began := time.Now()
			if err := exec.Command("/bin/true").Run(); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}),
		Note: "/bin/true from the request to its end. Ours passes through the init and back.",
	}.Run(t)
}
