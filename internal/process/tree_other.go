//go:build !linux

package process

import (
	"os/exec"
	"syscall"

	"github.com/tholehq/thole/internal/box"
)

// tree is the root's process group: the best that is portable. Tools that open
// their own session are missed; executors run on Linux.
type tree struct {
	root    int
	marker  string
	session bool // with stdin as controlling terminal
}

func newTree() *tree { return &tree{marker: "THOLE_PROCESS=1"} }

func (t *tree) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !t.session, Setsid: t.session, Setctty: t.session}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.root = cmd.Process.Pid
	return nil
}

func (t *tree) kill() { _ = syscall.Kill(-t.root, syscall.SIGKILL) }

func (t *tree) startIn(b *box.Box, c box.Command) (*box.Child, error) { return b.Spawn(c) }

func (t *tree) end(r root) error {
	err := r.wait()
	t.kill()
	return err
}

func (t *tree) release() {}

// Prepare makes nothing beforehand here.
func Prepare() (release func()) { return func() {} }

// OwnGroup, SweepGroups: there are no control groups here.
func OwnGroup() string { return "" }

func SweepGroups(string) {}

// Confine does nothing here.
func Confine(...string) {}
