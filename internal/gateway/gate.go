package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tholehq/thole"
)

const (
	maxWaiting       = 1024 // calls before one upstream
	maxThreadWaiting = 64   // of one thread
	maxPause         = time.Minute
)

// errFull is returned instead of a place in a queue that has none left.
var errFull = errors.New("the queue before the model service is full")

// gates holds the gate of each upstream that has calls or a pause.
type gates struct {
	mu  sync.Mutex // guards what follows, and every gate
	all map[string]*gate
}

// gate lets a number of calls into an upstream and makes the others wait. Threads take
// turns: one that sends many calls delays none of the others by more than one. After a
// 429 with Retry-After it pauses, then lets one call try, and the others when that was
// not refused.
type gate struct {
	parallel int // 0: any number
	running  int
	paused   time.Time
	trial    trial
	wake     *time.Timer

	turns   []thole.ThreadID // with waiting calls, in the order of their turns
	waiting map[thole.ThreadID][]*ticket
	count   int
}

// trial is the state of the one call that goes first after a pause.
type trial uint8

const (
	noTrial trial = iota
	trialDue
	trialRuns
)

// ticket is a waiting call. Its channel is closed when it may go.
type ticket struct {
	thread thole.ThreadID
	ready  chan struct{}
	trial  bool // it goes first after a pause; read after ready
}

// pass is a call inside of a gate.
type pass struct {
	g     *gates
	key   string
	trial bool
	once  sync.Once
}

// key distinguishes upstreams: one account at one address is one.
func (u Upstream) key() string { return u.Name + "\x00" + u.Item + "\x00" + u.Base.String() }

// enter waits for a place. The caller calls leave on the pass.
func (g *gates) enter(ctx context.Context, u Upstream, thread thole.ThreadID, now time.Time) (*pass, error) {
	key := u.key()
	g.mu.Lock()
	gt := g.all[key]
	if gt == nil {
		if g.all == nil {
			g.all = map[string]*gate{}
		}
		gt = &gate{waiting: map[thole.ThreadID][]*ticket{}}
		g.all[key] = gt
	}
	gt.parallel = u.Parallel
	if gt.count == 0 && gt.open(now) {
		p := &pass{g: g, key: key, trial: gt.admitOne()}
		g.mu.Unlock()
		return p, nil
	}
	if gt.count >= maxWaiting || len(gt.waiting[thread]) >= maxThreadWaiting {
		g.mu.Unlock()
		return nil, errFull
	}
	t := &ticket{thread: thread, ready: make(chan struct{})}
	gt.push(t)
	g.admit(key, gt, now)
	g.mu.Unlock()

	select {
	case <-t.ready:
		return &pass{g: g, key: key, trial: t.trial}, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	waited := gt.remove(t)
	g.forget(key, gt)
	g.mu.Unlock()
	if !waited { // it was let in meanwhile
		(&pass{g: g, key: key, trial: t.trial}).leave()
	}
	return nil, context.Cause(ctx)
}

// open reports whether one more call may go now.
func (gt *gate) open(now time.Time) bool {
	if now.Before(gt.paused) || gt.trial == trialRuns {
		return false
	}
	return gt.parallel == 0 || gt.running < gt.parallel
}

// admitOne counts a call in and reports whether it is the trial.
func (gt *gate) admitOne() bool {
	gt.running++
	if gt.trial == trialDue {
		gt.trial = trialRuns
		return true
	}
	return false
}

// admit lets in whom there is a place for, and sets the alarm for the end of a pause.
func (g *gates) admit(key string, gt *gate, now time.Time) {
	for gt.count > 0 && gt.open(now) {
		t := gt.pop()
		t.trial = gt.admitOne()
		close(t.ready)
	}
	if gt.wake != nil {
		gt.wake.Stop()
		gt.wake = nil
	}
	if now.Before(gt.paused) {
		gt.wake = time.AfterFunc(gt.paused.Sub(now), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.admit(key, gt, time.Now())
			g.forget(key, gt)
		})
	}
}

// forget drops a gate that has nothing to remember.
func (g *gates) forget(key string, gt *gate) {
	if gt.running == 0 && gt.count == 0 && gt.wake == nil && g.all[key] == gt {
		delete(g.all, key)
	}
}

// paused reports whether an upstream asked to be left alone.
func (g *gates) paused(u Upstream, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	gt := g.all[u.key()]
	return gt != nil && now.Before(gt.paused)
}

// answered records how the upstream took the call: after is what a 429 asked for, 0 for any
// other answer.
func (p *pass) answered(after time.Duration, now time.Time) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	gt := p.g.all[p.key]
	if after > 0 {
		gt.paused, gt.trial = now.Add(min(after, maxPause)), trialDue
	} else if !now.Before(gt.paused) {
		gt.trial = noTrial
	}
	p.g.admit(p.key, gt, now)
}

// leave gives the place to the next. It may be called again.
func (p *pass) leave() {
	p.once.Do(func() {
		p.g.mu.Lock()
		defer p.g.mu.Unlock()
		gt := p.g.all[p.key]
		gt.running--
		if p.trial && gt.trial == trialRuns { // it was never answered
			gt.trial = trialDue
		}
		p.g.admit(p.key, gt, time.Now())
		p.g.forget(p.key, gt)
	})
}

func (gt *gate) push(t *ticket) {
	if len(gt.waiting[t.thread]) == 0 {
		gt.turns = append(gt.turns, t.thread)
	}
	gt.waiting[t.thread] = append(gt.waiting[t.thread], t)
	gt.count++
}

// pop takes the oldest call of the thread whose turn it is, and puts that thread last.
func (gt *gate) pop() *ticket {
	thread := gt.turns[0]
	t := gt.waiting[thread][0]
	gt.turns = append(gt.turns[1:], thread)
	gt.remove(t)
	return t
}

// remove reports whether a ticket was still waiting.
func (gt *gate) remove(t *ticket) bool {
	list := gt.waiting[t.thread]
	for i := range list {
		if list[i] != t {
			continue
		}
		gt.count--
		list = append(list[:i:i], list[i+1:]...)
		if gt.waiting[t.thread] = list; len(list) > 0 {
			return true
		}
		delete(gt.waiting, t.thread)
		for j := range gt.turns {
			if gt.turns[j] == t.thread {
				gt.turns = append(gt.turns[:j:j], gt.turns[j+1:]...)
				return true
			}
		}
	}
	return false
}
