package process

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tholehq/thole/internal/box"
	"golang.org/x/sys/unix"
)

// A tree is the root and all its descendants. Membership is decided by three
// marks, any of which is enough, because tools lose each of them in turn:
//
//   - the chain of parents up to the root, lost by double forks;
//   - an environment variable, lost by `env -i`;
//   - the tag: a soft limit of a resource that nobody uses (POSIX message queue
//     bytes), inherited by fork and exec and readable even of a zombie. It counts
//     only below this process, which is a subreaper and so an ancestor of all.
//
// Where a cgroup can be made the kernel does the killing first; the marks then
// only have to find nothing.
type tree struct {
	// mu is held while members are killed or collected, the root too: what one
	// collects would be missing as another's evidence (see hunt_linux.go).
	mu     sync.Mutex
	dead   bool         // a kill found nothing left
	root   atomic.Int64 // 0 before the start and after the root was collected: its pid may have a new owner
	marker string       // NAME=value in the environment
	tag    uint64
	// tags are those by which members are known: ours, and those of members that are
	// supervisors of their own (a nested thole), whose orphans become ours.
	tags   map[uint64]bool
	cgroup *cgroup // nil where we may not make one
	// session makes the root the leader of a session with its stdin as controlling
	// terminal, instead of a process group.
	session bool
	inside  bool // a box: its members are not our children
}

const (
	markerName  = "THOLE_PROCESS"
	tagResource = unix.RLIMIT_MSGQUEUE
	killPause   = 2 * time.Millisecond
)

func newTree() *tree {
	var b [16]byte
	rand.Read(b[:])
	// Below the kernel's default of 819200, so that no privilege is needed.
	tag := 100_000 + binary.BigEndian.Uint64(b[:8])%700_000
	return &tree{marker: markerName + "=" + hex.EncodeToString(b[:]), tag: tag, tags: map[uint64]bool{tag: true}}
}

func (t *tree) start(cmd *exec.Cmd) error {
	_ = AdoptOrphans()
	t.cgroup = takeCgroup()
	err := withinGroups(func() error { return t.spawn(cmd) })
	if err != nil && t.cgroup != nil { // a cgroup we may make but not enter
		t.cgroup.remove()
		t.cgroup = nil
		again := &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr}
		if err = withinGroups(func() error { return t.spawn(again) }); err == nil {
			*cmd = *again
		}
	}
	if err == nil {
		t.enlist()
	}
	return err
}

// spawn starts the program and tags it. In a cgroup it is a member from its birth,
// and so is what it forks. Without one the tag comes before its first instruction,
// which could be a fork: it is started under ptrace and let go once tagged. Where
// ptrace is forbidden the tag comes a moment later and the other marks bridge it.
func (t *tree) spawn(cmd *exec.Cmd) error {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	attr := syscall.SysProcAttr{Setpgid: !t.session, Setsid: t.session, Setctty: t.session, Ptrace: t.cgroup == nil}
	if t.cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(t.cgroup.dir.Fd())
	} else if confined.dir != "" {
		dir, err := os.Open(confined.dir)
		if err != nil {
			return fmt.Errorf("enter the agents' control group: %w", err)
		}
		defer dir.Close()
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	}
	cmd.SysProcAttr = &attr
	err := cmd.Start()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		attr.Ptrace = false
		again := &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, SysProcAttr: &attr}
		if err = again.Start(); err == nil {
			*cmd = *again
		}
	}
	if err != nil {
		return err
	}
	pid := cmd.Process.Pid
	t.root.Store(int64(pid))
	if attr.Ptrace {
		var ws unix.WaitStatus
		for {
			if _, err := unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
				break
			}
		}
	}
	var old unix.Rlimit
	if unix.Prlimit(pid, tagResource, nil, &old) == nil {
		_ = unix.Prlimit(pid, tagResource, &unix.Rlimit{Cur: t.tag, Max: old.Max}, nil)
	}
	if attr.Ptrace {
		return unix.PtraceDetach(pid)
	}
	return nil
}

// startIn starts the root in a box. It has the tag from its birth; orphans are the
// init's there, which collects them.
func (t *tree) startIn(b *box.Box, c box.Command) (*box.Child, error) {
	c.Tag, c.Terminal, t.inside = t.tag, t.session, true
	child, err := b.Spawn(c)
	if err == nil {
		t.root.Store(int64(child.Pid()))
	}
	return child, err
}

// end waits for the root, ends what it leaves behind, and only then collects it:
// until that its pid and its process group are nobody else's. One in a box was
// collected when its end was reported; its number can only be another's of that box.
func (t *tree) end(r root) error {
	r.await()
	t.kill()
	t.mu.Lock()
	defer t.mu.Unlock()
	err := r.wait()
	t.root.Store(0)
	return err
}

// kill ends every member. In a cgroup the kernel has done so before the first look.
func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		return
	}
	h := t.hunt()
	if t.cgroup != nil {
		t.cgroup.kill()
	} else {
		h.freeze()
	}
	t.dead = h.kill(context.Background()) == nil
}

func (t *tree) hunt() *hunt {
	h := &hunt{root: int(t.root.Load()), member: t.member}
	if !t.inside {
		h.orphan = t.orphan
	}
	return h
}

func (t *tree) member(l *look, p *proc) bool {
	below, ours := l.ancestry(p, int(t.root.Load()))
	ours = ours || below && t.tags[p.readTag()] || p.hasMarker(t.marker)
	if ours && below && p.readTag() >= 100_000 && p.tag < 800_000 {
		t.tags[p.tag] = true
	}
	return ours
}

// orphan reports a child of this process that no one else waits for. The root is known before
// it has the tag, so it is compared last: it may have been started, and have ended,
// since this look began.
func (t *tree) orphan(p *proc) bool {
	return (t.tags[p.readTag()] || t.cgroup.holds(p.pid)) && int64(p.pid) != t.root.Load()
}

// release forgets the tree; nothing of it is left.
func (t *tree) release() {
	if t.cgroup != nil {
		t.cgroup.remove()
	}
	refill()
	if !t.inside {
		t.delist()
	}
}
