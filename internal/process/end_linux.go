package process

import (
	"context"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// AdoptOrphans makes this process the parent of every descendant whose own parent
// dies, so that none can leave the tree by forking twice. It is for the whole
// process, and may be repeated.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// AwaitExit returns when a started command has ended. Its pid stays its own until
// cmd.Wait.
func AwaitExit(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// EndDescendants ends every process below this one, which has adopted orphans: with
// a grace politely first. It collects all but the command, which is its caller's and
// may not have been waited for.
func EndDescendants(cmd *exec.Cmd, grace time.Duration) error {
	h := &hunt{
		root:   cmd.Process.Pid,
		member: func(l *look, p *proc) bool { below, _ := l.ancestry(p, 0); return below },
		orphan: func(*proc) bool { return true },
	}
	return h.end(context.Background(), grace)
}

// Marked finds the processes with a variable (NAME=value) in their environment, but
// for this one. One whose environment cannot be read does not count.
func Marked(marker string) (pids []int, err error) {
	l := newLook()
	for _, pid := range l.pids {
		if p := l.get(pid); pid != l.self && p != nil && p.hasMarker(marker) {
			pids = append(pids, pid)
		}
	}
	return pids, l.err
}

// EndMarked ends the processes with a variable (NAME=value) in their environment,
// whichever process started them, and those that also lists. The one that asks reports
// is asked first, and has the grace to end the rest in order. One whose environment
// cannot be read does not count.
func EndMarked(ctx context.Context, marker string, also func() []int, asks func(pid int) bool, grace time.Duration) error {
	var seen *look
	var listed []int
	h := &hunt{member: func(l *look, p *proc) bool {
		if l != seen {
			seen, listed = l, also()
		}
		return p.hasMarker(marker) || slices.Contains(listed, p.pid)
	}, asks: asks}
	return h.end(ctx, grace)
}

func (h *hunt) end(ctx context.Context, grace time.Duration) error {
	if grace > 0 {
		h.ask(ctx, grace)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	h.freeze()
	return h.kill(ctx)
}
