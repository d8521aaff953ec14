//go:build linux

package execserver

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

// session owns processes. Lock order: Server.mu, session.mu, process.mu.
type session struct {
	srv *Server
	id  string
	ttl time.Duration // how long it outlives its connection

	held *held
	conn atomic.Pointer[conn] // where notifications go; nil while detached

	mu        sync.Mutex // guards the rest
	processes map[string]*process
	leftovers map[int]struct{} // process groups that outlived their leader
	detached  time.Time
	timer     *time.Timer
	ended     bool
	procs     sync.WaitGroup // waiters of the processes
}

func newSession(s *Server, id string) *session {
	return &session{srv: s, id: id, ttl: s.cfg.DetachTTL, held: newHeld(s.cfg.Memory), processes: map[string]*process{}, leftovers: map[int]struct{}{}}
}

// attach gives the session a connection unless it has one.
func (ses *session) attach(c *conn) bool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if !ses.conn.CompareAndSwap(nil, c) {
		return false
	}
	if ses.timer != nil {
		ses.timer.Stop()
		ses.timer = nil
	}
	return true
}

// detach starts the grace period after connection c is gone.
func (ses *session) detach(c *conn) {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if !ses.conn.CompareAndSwap(c, nil) || ses.ended {
		return
	}
	ses.detached = time.Now()
	ses.timer = time.AfterFunc(ses.ttl, func() { ses.srv.expire(ses) })
}

// detachedFor reports whether the grace period has passed; a resume may have
// come between the timer and its function.
func (ses *session) detachedFor(d time.Duration) bool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return ses.conn.Load() == nil && !ses.ended && time.Since(ses.detached) >= d
}

// maxProcesses bounds those of a session that run or can still be read.
const maxProcesses = 16 << 10

// reserve takes a process id.
func (ses *session) reserve(p *process) *jsonrpc.Error {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	switch {
	case ses.processes[p.id] != nil || ses.ended:
		return jsonrpc.Errorf(exec.CodeInvalidRequest, "process %s already exists", p.id)
	case len(ses.processes) >= maxProcesses:
		return jsonrpc.Overloaded()
	}
	ses.processes[p.id] = p
	return nil
}

// shed drops kept output until an eighth of the budget is free: that of processes which
// closed first, then the largest.
func (ses *session) shed() {
	type candidate struct {
		p      *process
		size   int64
		closed time.Time
	}
	ses.mu.Lock()
	all := make([]candidate, 0, len(ses.processes))
	for _, p := range ses.processes {
		p.mu.Lock()
		if size := p.kept.size(); size > 0 {
			all = append(all, candidate{p, size, p.closedAt})
		}
		p.mu.Unlock()
	}
	ses.mu.Unlock()
	slices.SortFunc(all, func(a, b candidate) int {
		switch {
		case a.closed.IsZero() != b.closed.IsZero():
			return cmp.Compare(b2i(a.closed.IsZero()), b2i(b.closed.IsZero()))
		case !a.closed.IsZero():
			return a.closed.Compare(b.closed)
		}
		return cmp.Compare(b.size, a.size)
	})
	for _, c := range all {
		if ses.held.kept.count(0) <= -ses.held.kept.limit/8 {
			return
		}
		c.p.mu.Lock()
		c.p.dropKept()
		c.p.mu.Unlock()
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (ses *session) lookup(id string) *process {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return ses.processes[id]
}

func (ses *session) running() (n int) {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	for _, p := range ses.processes {
		if !p.over() {
			n++
		}
	}
	return n
}

// drop frees a process id.
func (ses *session) drop(p *process) {
	ses.mu.Lock()
	if ses.processes[p.id] == p {
		delete(ses.processes, p.id)
	}
	ses.mu.Unlock()
	p.mu.Lock()
	p.dropKept()
	p.mu.Unlock()
	if p.stdin != nil {
		p.stdin.forget()
	}
}

// leftover remembers a group whose leader is reaped, to be killed with the session.
func (ses *session) leftover(pgid int) {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	for g := range ses.leftovers {
		if unix.Kill(-g, 0) != nil {
			delete(ses.leftovers, g)
		}
	}
	ses.leftovers[pgid] = struct{}{}
}

// end kills everything the session owns.
func (ses *session) end() {
	ses.mu.Lock()
	ses.ended = true
	if ses.timer != nil {
		ses.timer.Stop()
	}
	all := make([]*process, 0, len(ses.processes))
	for _, p := range ses.processes {
		all = append(all, p)
	}
	groups := ses.leftovers
	ses.leftovers = map[int]struct{}{}
	ses.mu.Unlock()
	for _, p := range all {
		p.terminate()
		p.forget()
	}
	for g := range groups {
		killLeftover(g)
	}
}

// killLeftover kills what is left of a group whose leader was reaped. While a
// member lives its number cannot be reused; if a process has the number now, the
// group ended and the number is someone else's.
func killLeftover(pgid int) {
	if unix.Kill(pgid, 0) == unix.ESRCH {
		_ = unix.Kill(-pgid, unix.SIGKILL)
	}
}
