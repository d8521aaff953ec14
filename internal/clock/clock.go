// Package clock passes time in, so that machines and their tests agree on it.
// Machines take a time as an argument; a Clock is for the loops around them. Tests
// prefer testing/synctest; Fake is for those that have real sockets or databases,
// where a bubble cannot wait.
package clock

import "time"

// Clock tells time and calls back later. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc runs f once after d on its own goroutine. stop reports whether it
	// kept f from running.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
	// NewTimer sends the time once after d. An unread timer holds nobody up; Stop
	// takes an unread tick back and reports true.
	NewTimer(d time.Duration) Timer
}

// Timer is a running timer.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Real is the system clock.
var Real Clock = realClock{}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func (realClock) NewTimer(d time.Duration) Timer { return realTimer{time.NewTimer(d)} }

type realTimer struct{ t *time.Timer }

func (r realTimer) C() <-chan time.Time        { return r.t.C }
func (r realTimer) Stop() bool                 { return r.t.Stop() }
func (r realTimer) Reset(d time.Duration) bool { return r.t.Reset(d) }
