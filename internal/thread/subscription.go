package thread

import (
	"errors"
)

// ErrSlow ends a subscription whose reader fell behind its buffer.
var ErrSlow = errors.New("thread: subscriber too slow")

// Subscription is a reader's place in one thread. Events carries what happens
// after Snapshot, in order; it is closed at the end and Err then says why.
type Subscription struct {
	Snapshot Snapshot
	Events   <-chan *Batch

	err   func() error
	close func()
}

// Err returns why Events was closed: nil after Close, ErrSlow for a reader that
// fell behind, a *thole.Error otherwise.
func (s *Subscription) Err() error { return s.err() }

// Close ends the subscription. It may be repeated.
func (s *Subscription) Close() { s.close() }
