package base

import (
	"context"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/provider"
)

// TurnLock serializes access to a turn's state between the CLI reader, session calls
// and timers.
type TurnLock struct {
	hold chan struct{} // holds one token while the lock is held
	over chan struct{} // closed when the turn takes no more
	halt chan struct{} // closed when a stop was asked for
	once sync.Once
	end  provider.Ended // set before over is closed

	alarms []*Alarm // of the holder
}

// NewTurnLock makes the lock of one turn.
func NewTurnLock() *TurnLock {
	return &TurnLock{hold: make(chan struct{}, 1), over: make(chan struct{}), halt: make(chan struct{})}
}

// Do runs fn and returns its error; ErrNoTurn when the turn is over.
func (l *TurnLock) Do(ctx context.Context, fn func() error) error {
	select {
	case l.hold <- struct{}{}:
		defer func() { <-l.hold }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.Ended() {
		return provider.ErrNoTurn
	}
	return fn()
}

// Act runs fn, however long others act before; false when the turn is over.
func (l *TurnLock) Act(fn func()) bool {
	return l.Do(context.Background(), func() error { fn(); return nil }) == nil
}

// End says how the turn ended and that it takes no more. The holder calls it;
// only the first call counts.
func (l *TurnLock) End(ended provider.Ended) {
	if !l.Ended() {
		l.end = ended
		close(l.over)
	}
}

// Over is closed at the End.
func (l *TurnLock) Over() <-chan struct{} { return l.over }

// Ended reports whether End was called.
func (l *TurnLock) Ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// Stop asks the turn to stop, from anywhere and any number of times.
func (l *TurnLock) Stop() { l.once.Do(func() { close(l.halt) }) }

// hurried is the longest grace of a turn whose context has ended.
const hurried = 2 * time.Second

// Wait returns how the turn ended, when nobody acts on it any more. It acts when
// a caller asks to stop or ctx ends, with how long that may take, and when the CLI
// is gone.
func (l *TurnLock) Wait(ctx context.Context, gone <-chan struct{}, grace time.Duration, stop func(grace time.Duration), lost func()) provider.Ended {
	halt, done := l.halt, ctx.Done()
	for {
		select {
		case <-l.over:
			l.hold <- struct{}{} // the holder that ended it has returned
			for _, a := range l.alarms {
				a.Off()
			}
			<-l.hold
			return l.end
		case <-halt:
			halt = nil
			l.Act(func() { stop(grace) })
		case <-done:
			done = nil
			l.Act(func() { stop(min(grace, hurried)) })
		case <-gone:
			gone = nil
			l.Act(lost)
		}
	}
}

// Alarm acts on a turn after a while. It belongs to the holder.
type Alarm struct {
	lock *TurnLock
	ring func()
	due  time.Time // zero while it is off
	t    *time.Timer
	at   time.Time // when t fires
}

// NewAlarm makes one that is off. It is off again when Wait returns.
func (l *TurnLock) NewAlarm(ring func()) *Alarm {
	a := &Alarm{lock: l, ring: ring}
	l.alarms = append(l.alarms, a)
	return a
}

// Set makes it ring after d, and not at any earlier time it was set to. Setting it
// again and again to later times, as each delta does, costs next to nothing.
func (a *Alarm) Set(d time.Duration) {
	a.due = time.Now().Add(d)
	switch {
	case a.t == nil:
		a.t = time.AfterFunc(d, a.fire)
	case a.at.IsZero() || a.due.Before(a.at):
		a.t.Reset(d)
	default:
		return
	}
	a.at = a.due
}

func (a *Alarm) fire() {
	a.lock.Act(func() {
		a.at = time.Time{}
		if !a.On() {
			return
		}
		if left := time.Until(a.due); left > 0 {
			a.Set(left)
			return
		}
		a.Off()
		a.ring()
	})
}

// On reports whether it will ring.
func (a *Alarm) On() bool { return !a.due.IsZero() }

// Off silences it.
func (a *Alarm) Off() {
	if a.t != nil {
		a.t.Stop()
	}
	a.due, a.at = time.Time{}, time.Time{}
}
