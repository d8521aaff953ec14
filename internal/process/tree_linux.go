package process

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

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
	root   atomic.Int64 // 0 before the start and after the root was reaped: its pid may have a new owner
	marker string       // NAME=value in the environment
	tag    uint64
	cgroup *cgroup // nil where we may not make one
	// session makes the root the leader of a session with its stdin as controlling
	// terminal, instead of a process group.
	session bool
}

const (
	markerName  = "THOLE_PROCESS"
	tagResource = unix.RLIMIT_MSGQUEUE
	killPause   = 2 * time.Millisecond
	killLimit   = 15 * time.Second // past it a member is stuck in the kernel and no signal helps
)

// trees are those whose root was not released yet; the reaper runs while there
// are any.
var trees struct {
	sync.Mutex
	live map[*tree]struct{}
	dead chan os.Signal // a child ended, or may have before its tree was known
	stop chan struct{}
	gone chan struct{}
}

func newTree() *tree {
	var b [16]byte
	rand.Read(b[:])
	return &tree{
		marker: markerName + "=" + hex.EncodeToString(b[:]),
		// Below the kernel's default of 819200, so that no privilege is needed.
		tag: 100_000 + binary.BigEndian.Uint64(b[:8])%700_000,
	}
}

func (t *tree) start(cmd *exec.Cmd) error {
	// Process-wide and idempotent: orphans of our children become our children.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	t.cgroup = takeCgroup()
	err := t.spawn(cmd)
	if err != nil && t.cgroup != nil { // a cgroup we may make but not enter
		t.cgroup.remove()
		t.cgroup = nil
		again := &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr}
		if err = t.spawn(again); err == nil {
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

// enlist makes the tree known to the reaper and starts it for the first one.
func (t *tree) enlist() {
	trees.Lock()
	defer trees.Unlock()
	if trees.live == nil {
		trees.live = map[*tree]struct{}{}
	}
	trees.live[t] = struct{}{}
	if len(trees.live) == 1 {
		trees.dead, trees.stop, trees.gone = make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
		signal.Notify(trees.dead, unix.SIGCHLD)
		go reapOrphans(trees.dead, trees.stop, trees.gone)
	}
	select {
	case trees.dead <- unix.SIGCHLD:
	default:
	}
}

// kill ends every member, repeating until none is seen: a member that forked
// between the look and the signal has left a marked child behind. A look is no
// snapshot and may miss a newborn, but a chain of forks leaves dead orphans for
// us to collect; only looks that find neither count, and it takes several.
func (t *tree) kill() {
	if t.cgroup != nil {
		t.cgroup.kill()
	}
	tags := map[uint64]bool{t.tag: true}
	quiet := 0
	for end := time.Now().Add(killLimit); quiet < 3 && time.Now().Before(end); {
		members := t.members(tags)
		quiet++
		if t.reap() > 0 || len(members) > 0 {
			quiet = 0
		}
		for _, m := range members {
			m.kill()
		}
		time.Sleep(killPause) // they die asynchronously; nothing signals the death of a stranger's child
	}
}

// reaped says that the root's pid is free again.
func (t *tree) reaped() { t.root.Store(0) }

// release forgets the tree; nothing of it may be alive. Whoever died last may
// still be on the way out, and once the tree is forgotten nobody would collect
// it: two looks in a row must find nothing.
func (t *tree) release() {
	empty := 0
	for end := time.Now().Add(killLimit); empty < 2 && time.Now().Before(end); {
		if empty++; t.reap() > 0 {
			empty = 0
		}
		time.Sleep(killPause)
	}
	if t.cgroup != nil {
		t.cgroup.remove()
	}
	refill()
	trees.Lock()
	delete(trees.live, t)
	var stop, gone chan struct{}
	if len(trees.live) == 0 {
		stop, gone = trees.stop, trees.gone
	}
	trees.Unlock()
	if stop != nil {
		close(stop)
		<-gone
	}
}

// members lists the living members. Tags of members that are supervisors of
// their own (a nested thole) are added to tags, so that their orphans, which
// become ours, are found by the next look.
func (t *tree) members(tags map[uint64]bool) []proc {
	procs := scan()
	self, root := os.Getpid(), int(t.root.Load())
	var out []proc
	for pid, p := range procs {
		if pid == self || p.state == 'Z' || p.state == 'X' {
			continue
		}
		below, ours := ancestry(procs, pid, self, root)
		if !ours {
			p.readTag()
			ours = below && tags[p.tag] || p.hasMarker(t.marker)
		}
		if ours {
			if below && p.readTag() >= 100_000 && p.tag < 800_000 {
				tags[p.tag] = true
			}
			out = append(out, *p)
		}
	}
	return out
}

// ancestry says whether pid is below us and whether it is the root or below it.
func ancestry(procs map[int]*proc, pid, self, root int) (below, ours bool) {
	for range 1 << 10 { // a bound, because the table is not a consistent snapshot
		if pid == root && root != 0 {
			ours = true
		}
		if pid == self {
			return true, ours
		}
		p := procs[pid]
		if p == nil {
			return false, ours
		}
		pid = p.ppid
	}
	return false, ours
}

// reap collects dead orphans of the tree: they are our children because we are
// a subreaper, and nobody else waits for them. It returns how many orphans it
// saw, dead or on their way.
func (t *tree) reap() (seen int) {
	self := os.Getpid()
	for pid, p := range scan() {
		// The root is known before it has the tag, so it is looked at last: it may
		// have been started, and have ended, since this look began.
		if p.ppid == self && (p.readTag() == t.tag || t.cgroup.holds(pid)) && int64(pid) != t.root.Load() {
			seen++
			if p.state == 'Z' {
				var ws unix.WaitStatus
				_, _ = unix.Wait4(pid, &ws, unix.WNOHANG, nil)
			}
		}
	}
	return seen
}

// reapOrphans collects orphans that end while their root lives. It never waits
// for a root (exec.Cmd does) nor for a child that carries no tag.
func reapOrphans(dead chan os.Signal, stop, gone chan struct{}) {
	defer close(gone)
	defer signal.Stop(dead)
	for {
		select {
		case <-stop:
			return
		case <-dead:
		}
		select { // one look serves a burst of deaths, and none disturbs a start
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
		trees.Lock()
		live := make([]*tree, 0, len(trees.live))
		for t := range trees.live {
			live = append(live, t)
		}
		trees.Unlock()
		for _, t := range live {
			t.reap()
		}
	}
}

// proc is one row of /proc.
type proc struct {
	pid, ppid int
	state     byte
	start     uint64 // start time in ticks: with the pid it names a process for good
	tag       uint64 // 0 until read
}

func scan() map[int]*proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	procs := make(map[int]*proc, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p := readProc(pid); p != nil {
				procs[pid] = p
			}
		}
	}
	return procs
}

func readProc(pid int) *proc {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The command name is in parentheses and may contain anything.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return nil
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 {
		return nil
	}
	ppid, _ := strconv.Atoi(string(f[1]))
	start, _ := strconv.ParseUint(string(f[19]), 10, 64)
	return &proc{pid: pid, ppid: ppid, state: f[0][0], start: start}
}

func (p *proc) readTag() uint64 {
	if p.tag == 0 {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/limits")
		if _, rest, ok := bytes.Cut(b, []byte("Max msgqueue size")); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				p.tag, _ = strconv.ParseUint(string(f[0]), 10, 64)
			}
		}
	}
	return p.tag
}

func (p *proc) hasMarker(marker string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if string(kv) == marker {
			return true
		}
	}
	return false
}

// kill signals the very process that was seen, not a later owner of its pid.
func (p *proc) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		if err == unix.ENOSYS || err == unix.EPERM {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		return
	}
	defer unix.Close(fd)
	if now := readProc(p.pid); now == nil || now.start != p.start {
		return
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}
