package process

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// look is one look at the processes of the machine. It is no snapshot: each is read
// when it is asked for.
type look struct {
	self  int
	pids  []int // the youngest first: they are the first to be gone
	procs map[int]*proc
	lost  int // listed, but gone when they were to be read
	err   error
}

func newLook() *look {
	l := &look{self: os.Getpid(), procs: map[int]*proc{}}
	dir, err := os.Open("/proc")
	if err != nil {
		l.err = err
		return l
	}
	names, err := dir.Readdirnames(-1)
	l.err = err
	dir.Close()
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			l.pids = append(l.pids, pid)
		}
	}
	newest := lastPid()
	slices.SortFunc(l.pids, func(a, b int) int { // pids come round
		return cmp.Or(cmp.Compare(btoi(a > newest), btoi(b > newest)), cmp.Compare(b, a))
	})
	return l
}

// lastPid is the pid given last.
func lastPid() int {
	b, _ := os.ReadFile("/proc/loadavg")
	n := 0
	if f := bytes.Fields(b); len(f) > 0 {
		n, _ = strconv.Atoi(string(f[len(f)-1]))
	}
	return n
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// get is a process as it was when it was first asked for; nil when it was gone.
func (l *look) get(pid int) *proc {
	p, known := l.procs[pid]
	if !known {
		if p = readProc(pid); p == nil {
			l.lost++
		}
		l.procs[pid] = p
	}
	return p
}

// ancestry says whether a process is below us and whether it is the root or below it.
func (l *look) ancestry(p *proc, root int) (below, ours bool) {
	for range 1 << 10 { // a bound, because the table is not a consistent snapshot
		ours = ours || p.pid == root
		if p.ppid == l.self {
			return true, ours
		}
		if p.ppid == 0 {
			break
		}
		if p = l.get(p.ppid); p == nil {
			break
		}
	}
	return false, ours
}

// proc is one row of /proc.
type proc struct {
	pid, ppid int
	group     int
	state     byte
	threads   int
	start     uint64 // start time in ticks: with the pid it names a process for good
	tag       uint64 // 0 until read
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
	p := &proc{pid: pid, state: f[0][0]}
	p.ppid, _ = strconv.Atoi(string(f[1]))
	p.group, _ = strconv.Atoi(string(f[2]))
	p.threads, _ = strconv.Atoi(string(f[17]))
	p.start, _ = strconv.ParseUint(string(f[19]), 10, 64)
	return p
}

// alive is false of a zombie, whichever process is to collect it and whenever it does. One
// whose first thread has ended but others have not looks like a zombie.
func (p *proc) alive() bool { return p.state != 'X' && (p.state != 'Z' || p.threads > 1) }

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

// signal reaches the very process that was seen, not a later owner of its pid.
func (p *proc) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	switch err {
	case nil:
	case unix.ENOSYS, unix.EPERM:
		return unix.Kill(p.pid, sig)
	default:
		return err
	}
	defer unix.Close(fd)
	if now := readProc(p.pid); now == nil || now.start != p.start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// collect takes a dead child of this process away.
func (p *proc) collect() {
	var ws unix.WaitStatus
	_, _ = unix.Wait4(p.pid, &ws, unix.WNOHANG, nil)
}
