package sqldb

import (
	"context"
	"errors"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxGroup bounds how many callers share one commit, and so how long the first
// of them waits for the last.
const maxGroup = 256

// group is the only writer of a SQLite file. Callers queue; the first to find
// nobody leading becomes the leader and runs every queued function, one after
// another in one transaction, each in a savepoint of its own, and pays one
// fsync for all. Leadership passes to the next waiter, so a caller that is alone
// commits on its own goroutine without a hand-over.
type group struct {
	s    *session
	hook Hook
	now  func() time.Time

	mu      sync.Mutex // guards what follows
	queue   []*write
	leading bool
	closed  bool
	idle    *sync.Cond // leading became false
	broken  error      // the disk failed a commit; nothing more is written
}

type write struct {
	step string
	fn   func(*Tx) error
	tx   *Tx
	// wake signals a waiter to lead (true) or that err is its result (false).
	wake     chan bool
	err      error
	panicked any
}

func newGroup(s *session, hook Hook, now func() time.Time) *group {
	g := &group{s: s, hook: hook, now: now}
	g.idle = sync.NewCond(&g.mu)
	return g
}

func (g *group) update(ctx context.Context, step string, fn func(*Tx) error) (*Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &write{step: step, fn: fn, tx: &Tx{ctx: ctx, q: writerQuerier{g.s}, clock: g.clock}, wake: make(chan bool, 1)}
	g.mu.Lock()
	switch {
	case g.closed:
		g.mu.Unlock()
		return nil, errClosed()
	case g.broken != nil:
		err := g.broken
		g.mu.Unlock()
		return nil, err
	}
	g.queue = append(g.queue, w)
	lead := !g.leading
	g.leading = true
	g.mu.Unlock()

	if !lead {
		select {
		case lead = <-w.wake:
		case <-ctx.Done():
			if g.withdraw(w) {
				return nil, ctx.Err()
			}
			lead = <-w.wake // already taken: the result or the lead is on its way
		}
	}
	if lead {
		g.lead()
	}
	if w.panicked != nil {
		panic(w.panicked)
	}
	return w.tx, w.err
}

// withdraw takes w off the queue unless a leader already has it, or it is to
// lead itself.
func (g *group) withdraw(w *write) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, have := range g.queue {
		if have == w && len(w.wake) == 0 {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			return true
		}
	}
	return false
}

func (g *group) next() *write {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		return nil
	}
	w := g.queue[0]
	g.queue = g.queue[1:]
	return w
}

// lead commits one group, the leader's own write first, and passes the lead on.
func (g *group) lead() {
	var done []*write // all that were taken, whatever became of them
	finished := false
	defer func() {
		if !finished { // a function ended its goroutine (runtime.Goexit)
			_ = g.s.run("rollback")
			for _, w := range done {
				w.err = thole.Errorf(thole.CodeInternal, "a transaction function left its goroutine; the group was undone")
			}
		}
		g.handOver()
		for _, w := range done {
			w.wake <- false
		}
	}()

	var live []*write // those that go into the commit
	aborted := g.s.run("begin immediate")
	for len(done) < maxGroup {
		w := g.next()
		if w == nil {
			break
		}
		done = append(done, w)
		if aborted != nil {
			w.err = classify(aborted)
			continue
		}
		var kept bool
		if kept, aborted = g.run(w, len(live) == 0); kept {
			live = append(live, w)
		}
	}
	if aborted != nil || len(live) == 0 {
		_ = g.s.run("rollback") // fails harmlessly when SQLite has already undone it
		for _, w := range live {
			w.err = classify(aborted)
		}
	} else {
		g.commit(live)
	}
	finished = true
}

// run executes one function and reports whether its changes stand. The first of
// a transaction needs no savepoint: when it fails the transaction is begun again.
// An error means that the whole transaction is gone, as after a full disk.
func (g *group) run(w *write, first bool) (kept bool, aborted error) {
	if !first {
		if w.err = g.s.run("savepoint w"); w.err != nil {
			return false, w.err
		}
	}
	w.err = call(w)
	failed := w.err != nil || w.panicked != nil
	switch {
	case first && failed:
		_ = g.s.run("rollback")
		return false, g.s.run("begin immediate")
	case first:
		return true, nil
	case failed:
		return false, errors.Join(g.s.run("rollback to w"), g.s.run("release w"))
	default:
		w.err = g.s.run("release w")
		return w.err == nil, w.err
	}
}

func call(w *write) (err error) {
	defer func() {
		if r := recover(); r != nil {
			w.panicked = r
		}
	}()
	return w.tx.outcome(w.fn(w.tx))
}

func (g *group) commit(live []*write) {
	g.callHook(BeforeCommit, live)
	if err := g.s.run("commit"); err != nil {
		_ = g.s.run("rollback")
		failure := classify(err)
		if !definite(err) {
			failure = &unknownOutcome{failure}
			g.fail(failure)
		}
		for _, w := range live {
			w.err = failure
		}
		return
	}
	g.callHook(AfterCommit, live)
}

func (g *group) callHook(p Point, live []*write) {
	if g.hook == nil {
		return
	}
	for _, w := range live {
		g.hook(p, w.step)
	}
}

// fail stops all writing: after a failed fsync the kernel may have dropped the
// pages, and a later success would prove nothing about them.
func (g *group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == nil {
		g.broken = thole.Errorf(thole.CodeUnavailable, "the store stopped writing after a failed commit: %w", err).
			WithHint("check the disk, then restart thole")
	}
}

// definite reports whether a failed commit certainly left nothing behind: no
// commit record was written.
func definite(err error) bool {
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return false
	}
	switch lite.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CONSTRAINT:
		return true
	}
	return false
}

func (g *group) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		g.queue[0].wake <- true
		return
	}
	g.leading = false
	g.idle.Broadcast()
}

func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.leading {
		g.idle.Wait()
	}
}

func (g *group) clock(*Tx) time.Time { return g.now() }

func errClosed() error {
	return thole.Errorf(thole.CodeUnavailable, "the store is closed")
}
