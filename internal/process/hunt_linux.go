package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"
)

// hunt ends a set of processes that may fork faster than we look.
//
// A link of a chain of forks is gone when a signal for it comes, so whole process
// groups are signalled too: that is one step for the kernel, and a group outlives
// its links. Members are first stopped, which leaves the parents of those that are
// known by nothing else, and then killed.
//
// That nothing is left is proven, not guessed. The topmost members are our children,
// since orphans become ours, and a child stays in the list until we collect it:
// a look that finds neither a living member nor a dead child has missed none. This
// holds while nobody else collects them; the hunted set's other roots, if it has
// any, are not below us, and for those a look in which a process was gone before they
// could be read proves nothing.
type hunt struct {
	// root is a child of this process, dead or alive, that is collected after the hunt; 0
	// when there is none.
	root   int
	member func(*look, *proc) bool
	// orphan reports which of our dead children are the set's; nil when members are
	// not below us.
	orphan func(*proc) bool
	// asks reports who is asked to end, because it ends the rest; nil for all.
	asks func(pid int) bool

	sent   map[member]unix.Signal
	groups map[int]bool // those in which members were seen and nobody else
	looks  int
	err    error // the last signal that was refused
}

// member is one process for good.
type member struct {
	pid   int
	start uint64
}

const (
	// freezeLooks bounds the wait for a set that is not caught standing still; it is
	// then killed as it is.
	freezeLooks = 20
	// idleLooks in a row that found only members who were signalled before: they are
	// stuck in the kernel, and no signal helps.
	idleLooks = 300
	// allLooks is the end for a set that we may not signal and that forks for ever.
	allLooks = 20_000
	// emptyLooks must follow one another when a look may have missed a process: a
	// member that lost its tag before it died, or was gone when it was to be read.
	emptyLooks = 2
	// lostLooks ends the wait for a look in which nobody was gone: on a busy machine
	// there is none.
	lostLooks = 20
	longPause = 50 * time.Millisecond
)

// ask signals members that they should end, and gives them time for it.
func (h *hunt) ask(ctx context.Context, grace time.Duration) {
	end := time.Now().Add(grace)
	found := h.look(unix.SIGTERM)
	for pause := time.Millisecond; (found.asked > 0 || found.alive > 0 && h.asks == nil) && time.Now().Before(end) && rest(ctx, pause) == nil; pause = min(2*pause, longPause) {
		found = h.look(0)
	}
}

// freeze stops all members: a look finds nobody who is not.
func (h *hunt) freeze() {
	for range freezeLooks {
		if found := h.look(unix.SIGSTOP); found.fresh == 0 {
			return
		}
	}
}

// kill ends all members and returns when none is left.
func (h *hunt) kill(ctx context.Context) error {
	empty, lost, idle := 0, 0, 0
	pause := killPause
	for h.looks < allLooks && idle < idleLooks {
		found := h.look(unix.SIGKILL)
		switch {
		case found.err != nil:
			return fmt.Errorf("look for processes: %w", found.err)
		case found.fresh > 0: // a chain of forks waits for nobody
			empty, lost, idle, pause = 0, 0, 0, killPause
		case found.alive > 0: // they die by themselves; nothing signals the death of a stranger's child
			empty, lost = 0, 0
			idle++
			if err := rest(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, longPause)
		case h.orphan == nil && found.lost && lost < lostLooks:
			lost++
		default:
			if empty++; empty >= emptyLooks {
				return nil
			}
		}
	}
	if h.err != nil {
		return h.err
	}
	return errors.New("processes do not die: they wait in the kernel, or fork faster than they are killed")
}

// sight is what a look found.
type sight struct {
	alive int  // living members
	asked int  // those of them that were asked to end
	fresh int  // those not signalled before, and the dead that prove that some were missed
	lost  bool // a process was gone before it was read
	err   error
}

// listed is called between the list of a look and its first signal; tests let time
// pass there.
var listed = func() {}

// look signals every member it sees, and their groups.
func (h *hunt) look(sig unix.Signal) (found sight) {
	h.looks++
	sweep := sig == unix.SIGSTOP || sig == unix.SIGKILL // nobody may hear another twice
	if sweep && h.root != 0 {
		_ = unix.Kill(-h.root, sig)
	}
	l := newLook()
	found.err = l.err
	listed()
	var dead []*proc
	groups, others := map[int]bool{}, map[int]bool{} // of members, and of anybody else
	for _, pid := range l.pids {
		p := l.get(pid)
		if p == nil {
			continue
		}
		switch {
		case !p.alive():
			if p.ppid != l.self || !h.collects(p) {
				continue
			}
			dead = append(dead, p) // what it started may be in its group
		case pid == l.self || !h.member(l, p):
			others[p.group] = true
			continue
		default:
			found.alive++
			if h.signal(p, sig) {
				found.fresh++
			}
			if h.sent[member{p.pid, p.start}] == unix.SIGTERM {
				found.asked++
			}
		}
		groups[p.group] = true
	}
	if !sweep {
		sig = 0
	}
	h.signalGroups(sig, groups, others)
	for _, p := range dead { // last: they hold the ids of their groups
		found.fresh++
		p.collect()
	}
	found.lost = l.lost > 0
	return found
}

// signalGroups signals the groups of members, those seen before too: their links of
// today may have been missed. A group that ended and whose id is another's now has
// others in it, or was begun since the list was made.
func (h *hunt) signalGroups(sig unix.Signal, seen, others map[int]bool) {
	if h.groups == nil {
		h.groups = map[int]bool{}
	}
	maps.Copy(h.groups, seen)
	for group := range h.groups {
		if others[group] || unix.Kill(-group, sig) == unix.ESRCH {
			delete(h.groups, group)
		}
	}
}

// collects says whether a dead child of this process is of the set. It may have lost its
// tag, but not that we know it.
func (h *hunt) collects(p *proc) bool {
	if h.orphan == nil || p.pid == h.root {
		return false
	}
	_, known := h.sent[member{p.pid, p.start}]
	return known || h.orphan(p)
}

// signal reports whether the process had not been sent it before.
func (h *hunt) signal(p *proc, sig unix.Signal) bool {
	id := member{p.pid, p.start}
	if sig == 0 || h.sent[id] == sig || sig == unix.SIGTERM && h.asks != nil && !h.asks(p.pid) {
		return false
	}
	if err := p.signal(sig); err != nil && !errors.Is(err, unix.ESRCH) {
		h.err = fmt.Errorf("signal %d: %w", p.pid, err)
		return false // and tries again
	}
	if h.sent == nil {
		h.sent = map[member]unix.Signal{}
	}
	h.sent[id] = sig
	return true
}

// rest is a pause that ends with ctx.
func rest(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}
