package delivery_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// model is the delivery machine once more, as plain values in memory: what should
// happen, written down without rows, versions, fences or transactions.
type model struct {
	now    time.Time
	l      delivery.Limits
	lanes  map[string]*mLane
	parent map[thole.JobID]thole.JobID
	jobs   map[thole.JobID]*mJob
}

type mJob struct {
	lane    *mLane
	state   thole.JobState
	settled thole.JobState
	bytes   int
}

type mLane struct {
	name                string
	desktop             bool
	batches             []*mBatch
	gen                 int64
	notBefore, eligible time.Time
	failures            int64
	blocked, ready      bool

	bound              thole.BindingState // of its heartbeat
	armed              int64
	quiet              bool
	pauseFrom, pauseBy time.Time
	open               *mAttempt
}

type mBatch struct {
	jobs     []thole.JobID
	bytes    int
	first    time.Time
	state    thole.BatchState
	held     bool
	aside    bool // held, and stands before nothing
	released bool
	allowed  int64 // attempts, where a person added one
	reason   thole.CloseReason
	window   time.Time
	count    int64
	attempts []*mAttempt
}

type mAttempt struct {
	batch              *mBatch
	gen                int64
	state              thole.AttemptState
	deadline, cooldown time.Time
	lease              time.Time // until then nobody else reconciles
	doubt              bool      // its thread may have read it
}

func newModel(l delivery.Limits, now time.Time) *model {
	return &model{now: now, l: l, lanes: map[string]*mLane{}, parent: map[thole.JobID]thole.JobID{}, jobs: map[thole.JobID]*mJob{}}
}

func (l *mLane) head() *mBatch {
	for _, b := range l.batches {
		if b.state != thole.BatchClosed && !b.aside {
			return b
		}
	}
	return nil
}

func (m *model) submit(lane string, desktop bool, id, parent thole.JobID) {
	if m.lanes[lane] == nil {
		m.lanes[lane] = &mLane{name: lane, desktop: desktop}
	}
	m.jobs[id] = &mJob{lane: m.lanes[lane], state: thole.JobRunning}
	if parent != "" {
		m.parent[id] = parent
	}
}

func (m *model) openChild(id thole.JobID) bool {
	for c, p := range m.parent {
		if p == id && m.jobs[c].state == thole.JobRunning {
			return true
		}
	}
	return false
}

// weight is what a job carries with everything inside it.
func (m *model) weight(id thole.JobID) int {
	n := m.jobs[id].bytes
	for c, p := range m.parent {
		if p == id && m.jobs[c].state.Deliverable() {
			n += m.weight(c)
		}
	}
	return n
}

func (m *model) finish(id thole.JobID, s thole.JobState, bytes int) {
	j := m.jobs[id]
	j.settled, j.bytes = s, bytes
	m.rise(id)
	m.rest(j.lane)
}

// rise lets a finished job go when nothing below it is open, and then its parent.
func (m *model) rise(id thole.JobID) {
	j := m.jobs[id]
	if j == nil || j.state != thole.JobRunning || j.settled == "" || m.openChild(id) {
		return
	}
	j.state = j.settled
	if p, ok := m.parent[id]; ok {
		m.rise(p)
		return
	}
	l, w := j.lane, m.weight(id)
	var last *mBatch
	open := 0
	for _, b := range l.batches { // the last open one: after it may be cancelled ones
		if b.state != thole.BatchClosed && !b.aside {
			last = b
			open++
		}
	}
	if last == nil || last.state != thole.BatchQueued || last.released || open == 1 && !m.now.Before(last.first.Add(m.l.WaitWindow)) ||
		int64(len(last.jobs)) >= m.l.MaxJobs || int64(last.bytes+w) > m.l.MaxBytes {
		last = &mBatch{state: thole.BatchQueued, first: m.now}
		l.batches = append(l.batches, last)
	}
	last.jobs = append(last.jobs, id)
	last.bytes += w
}

func (m *model) cancel(id thole.JobID) (ok bool) {
	j := m.jobs[id]
	if j.state == thole.JobCancelled {
		return true
	}
	if j.state.Terminal() {
		b := m.batchOf(id)
		if b == nil || b.state == thole.BatchClosed || len(b.jobs) > 1 || j.lane.open != nil && j.lane.open.batch == b && j.lane.open.state != thole.AttemptPrepared {
			return false
		}
		m.close(j.lane, b, thole.CloseCancelled)
	}
	m.drop(id)
	if p, ok := m.parent[id]; ok {
		m.rise(p)
	}
	m.rest(j.lane)
	return true
}

func (m *model) drop(id thole.JobID) {
	m.jobs[id].state = thole.JobCancelled
	for c, p := range m.parent {
		if p == id {
			m.drop(c)
		}
	}
}

func (m *model) batchOf(id thole.JobID) *mBatch {
	for _, b := range m.jobs[id].lane.batches {
		if slices.Contains(b.jobs, id) {
			return b
		}
	}
	return nil
}

func (m *model) close(l *mLane, b *mBatch, r thole.CloseReason) {
	if l.open != nil && l.open.batch == b {
		if l.open.state == thole.AttemptCooldown {
			m.end(l, thole.AttemptClosed)
		} else {
			m.end(l, thole.AttemptAbandoned)
		}
	}
	b.state, b.reason, b.aside = thole.BatchClosed, r, false
}

func (m *model) end(l *mLane, s thole.AttemptState) { l.open.state, l.open = s, nil }

func (m *model) hold(l *mLane, b *mBatch) {
	if l.open != nil {
		m.end(l, thole.AttemptAbandoned)
	}
	b.held, b.state = true, thole.BatchMaterialized
	if t := m.now.Add(m.l.ManualWindow); t.After(b.window) {
		b.window = t
	}
}

// release is a person's word that a held batch goes all the same.
func (m *model) release(l *mLane, anyway bool) (ok bool) {
	b := l.head()
	if b == nil || !b.held {
		return b != nil && b.released
	}
	for _, a := range b.attempts {
		if a.doubt && !anyway {
			return false
		}
	}
	b.held, b.released, b.allowed = false, true, b.count+1
	if t := m.now.Add(m.l.ManualWindow); t.After(b.window) {
		b.window = t
	}
	l.failures, l.eligible = 0, time.Time{}
	m.rest(l)
	return true
}

// setAside takes the first batch out of the way of the others.
func (m *model) setAside(l *mLane, b *mBatch) {
	m.hold(l, b)
	b.aside = true
	m.rest(l)
}

// readmit is a person's word for a batch that is aside: it queues after the others.
func (m *model) readmit(l *mLane, b *mBatch) {
	b.held, b.aside, b.released, b.allowed = false, false, true, b.count+1
	b.state, b.window = thole.BatchQueued, time.Time{}
	l.batches = append(slices.DeleteFunc(l.batches, func(x *mBatch) bool { return x == b }), b)
	l.failures, l.eligible = 0, time.Time{}
	m.rest(l)
}

func (l *mLane) firstAside() *mBatch {
	for _, b := range l.batches {
		if b.aside {
			return b
		}
	}
	return nil
}

func (m *model) following(l *mLane) bool {
	return l.open != nil && (l.open.state == thole.AttemptAcceptPending || l.open.state == thole.AttemptArmPending ||
		l.open.state == thole.AttemptCooldown && !l.desktop)
}

// rest is where a lane comes to after anything happened to it.
func (m *model) rest(l *mLane) {
	l.ready = false
	for b := l.head(); b != nil && !m.following(l); b = l.head() {
		full := int64(len(b.jobs)) >= m.l.MaxJobs || int64(b.bytes) >= m.l.MaxBytes
		switch {
		case b.state == thole.BatchQueued && !full && m.now.Before(b.first.Add(m.l.WaitWindow)):
			return
		case b.state == thole.BatchQueued:
			b.state, b.window = thole.BatchMaterialized, m.now.Add(m.l.Window)
		case !m.now.Before(b.window) && b.held:
			m.close(l, b, thole.CloseManualExpired)
		case !m.now.Before(b.window):
			m.close(l, b, thole.CloseWindowExhausted)
		case b.held, l.open != nil && l.open.state == thole.AttemptCooldown && m.now.Before(l.open.cooldown):
			return
		case b.count >= max(m.l.MaxAttempts, b.allowed):
			m.close(l, b, thole.CloseMaxAttempts)
		default:
			l.ready = !l.blocked && !m.now.Before(l.eligible) && !m.now.Before(l.notBefore)
			return
		}
	}
}

// sendable asks whether the first batch may go out right now.
func (m *model) sendable(l *mLane) bool {
	b, a := l.head(), l.open
	return b != nil && b.state != thole.BatchQueued && !b.held && m.now.Before(b.window) && b.count < max(m.l.MaxAttempts, b.allowed) && !m.following(l) &&
		!(a != nil && a.state == thole.AttemptCooldown && m.now.Before(a.cooldown)) &&
		!l.blocked && !m.now.Before(l.eligible) && !m.now.Before(l.notBefore)
}

func (m *model) prepare(l *mLane) {
	if l.open != nil && l.open.state == thole.AttemptPrepared {
		return
	}
	if l.open != nil {
		m.end(l, thole.AttemptSuperseded)
	}
	l.gen++
	b := l.head()
	l.open = &mAttempt{batch: b, gen: l.gen, state: thole.AttemptPrepared}
	b.state = thole.BatchMaterialized
	b.attempts = append(b.attempts, l.open)
}

func (m *model) counted(l *mLane) {
	b := l.open.batch
	l.open.state, l.open.doubt = thole.AttemptCooldown, true
	if l.desktop {
		l.open.cooldown = m.now.Add(m.l.Cooldown)
		l.blocked, l.armed, l.quiet = true, l.open.gen, false
		l.pauseFrom, l.pauseBy = m.now.Add(m.l.PauseDelay), m.now.Add(m.l.PauseDelay+m.l.PauseTime)
	} else {
		l.open.deadline = m.now.Add(m.l.Observation)
	}
	b.count++
	b.state = thole.BatchCooldown
	l.notBefore, l.failures, l.eligible = m.now.Add(m.l.MinInterval), 0, time.Time{}
	m.rest(l)
}

func (m *model) setback(l *mLane) {
	l.failures++
	d := m.l.RetryMin << (l.failures - 1)
	if l.failures > 20 || d > m.l.RetryMax {
		d = m.l.RetryMax
	}
	l.eligible = m.now.Add(d)
	l.ready = false
}

// sweep also knows what the files of heartbeats show.
func (m *model) sweep(seen thole.AutomationStatus) {
	for _, l := range m.lanes {
		for _, b := range l.batches {
			if b.aside && !m.now.Before(b.window) {
				m.close(l, b, thole.CloseManualExpired)
			}
		}
		if m.following(l) {
			a := l.open
			late := !m.now.Before(a.deadline)
			if a.state == thole.AttemptCooldown {
				late = m.now.After(a.deadline)
			}
			switch {
			case a.state == thole.AttemptArmPending:
				if !m.now.Before(a.lease) {
					m.reconcile(l, seen)
				}
			case late && a.state == thole.AttemptAcceptPending: // time proves nothing
				a.deadline = m.now.Add(max(m.l.AcceptTimeout, m.l.Observation))
			case late:
				m.hold(l, a.batch)
			}
		}
		if l.bound == thole.BindingBound && l.blocked && !m.now.Before(l.pauseFrom) {
			switch {
			case seen.Quiet():
				l.quiet, l.blocked = true, false
			case !m.now.Before(l.pauseBy.Add(m.l.PauseRetry)):
				l.bound, l.blocked = thole.BindingDegraded, false
				m.forsake(l)
			}
		}
		m.rest(l)
	}
}

// reconcile ends an arming by what its heartbeat's file shows, if that or time allows it.
func (m *model) reconcile(l *mLane, seen thole.AutomationStatus) (ended bool) {
	switch {
	case seen.Quiet():
		m.end(l, thole.AttemptAbandoned)
		m.setback(l)
	case !m.now.Before(l.open.deadline):
		m.hold(l, l.open.batch)
		l.bound, l.blocked = thole.BindingDegraded, false
	default:
		return false
	}
	m.rest(l)
	return true
}

// forsake ends an attempt whose heartbeat is no longer the thread's.
func (m *model) forsake(l *mLane) {
	if l.open == nil {
		return
	}
	if b := l.open.batch; b.state == thole.BatchCooldown {
		b.state = thole.BatchMaterialized
	}
	m.end(l, thole.AttemptAbandoned)
	m.setback(l)
}

// text is the model's state in the form the machine's state is compared in.
func (m *model) text() string {
	var w strings.Builder
	for _, name := range []string{"a", "b", "c", "d"} {
		l := m.lanes[name]
		if l == nil {
			continue
		}
		fmt.Fprintf(&w, "%s ready=%v\n", name, l.ready)
		if l.bound != "" {
			quiet := "-"
			if l.quiet {
				quiet = "quiet"
			}
			fmt.Fprintf(&w, "  heartbeat %s %d %s\n", l.bound, l.armed, quiet)
		}
		for _, b := range l.batches {
			fmt.Fprintf(&w, "  %v %s held=%v %s n=%d", b.jobs, b.state, b.held, b.reason, b.count)
			if b.state != thole.BatchQueued && b.state != thole.BatchClosed {
				fmt.Fprintf(&w, " until=%d", b.window.UnixMilli())
			}
			for _, a := range b.attempts {
				fmt.Fprintf(&w, " %d:%s", a.gen, a.state)
			}
			w.WriteString("\n")
		}
	}
	return w.String()
}
