//go:build !linux

package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tholehq/thole/internal/procid"
)

// AdoptOrphans has no equivalent here: a descendant that leaves its group and its
// parent is out of reach.
func AdoptOrphans() error { return nil }

// AwaitExit returns when a started command has ended. It is collected.
func AwaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// EndDescendants ends every process below this one: with a grace politely first.
func EndDescendants(cmd *exec.Cmd, grace time.Duration) error {
	if grace > 0 {
		for _, pid := range living() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		for end := time.Now().Add(grace); time.Now().Before(end) && len(living()) > 0; {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for left := living(); len(left) > 0; left = living() {
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// Marked needs the environments of other processes.
func Marked(string) ([]int, error) {
	return nil, errors.New("processes cannot be found by their environment here")
}

// EndMarked needs the environments of other processes.
func EndMarked(context.Context, string, func() []int, func(int) bool, time.Duration) error {
	return errors.New("processes cannot be found by their environment here")
}

// living lists every process below this one.
func living() (left []int) {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		p, e1 := strconv.Atoi(f[0])
		parent, e2 := strconv.Atoi(f[1])
		if e1 == nil && e2 == nil {
			children[parent] = append(children[parent], p)
		}
	}
	for queue := []int{os.Getpid()}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range children[queue[0]] {
			if procid.Of(pid).Alive() == nil {
				left = append(left, pid)
			}
			queue = append(queue, pid)
		}
	}
	return left
}
