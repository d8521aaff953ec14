// Package serial runs tasks in keyed queues: tasks of one key run in the order
// they came, tasks of different keys at the same time. A task is exclusive, or
// shared and then runs together with its shared neighbours. A key without tasks has
// no goroutine and no memory. Queues are bounded and refuse when full.
package serial

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Mode says what a task tolerates next to it under its key.
type Mode uint8

const (
	Exclusive Mode = iota // nothing
	Shared                // other shared tasks
)

var (
	// ErrFull reports a queue at its bound; the task will not run.
	ErrFull = errors.New("serial: queue is full")
	// ErrClosed reports a task that came after Close; it will not run.
	ErrClosed = errors.New("serial: closed")
)

// Options bound the queues. Zero fields take the defaults.
type Options struct {
	PerKey int // unfinished tasks of one key; default 1,024
	Total  int // unfinished tasks of all keys; default 65,536
}

// Queues holds the tasks of all keys. Lanes with a task that may run wait in a
// ready list for workers. Tasks may block for long, so there is no fixed number of
// workers: while the list is not empty, at least one worker is on its way to it.
type Queues[K comparable] struct {
	opts  Options
	tasks atomic.Int64 // accepted, not finished; changed under mu

	mu    sync.Mutex // guards all below and every lane
	lanes map[K]*lane[K]

	ready, last *lane[K] // list of lanes whose head may run, oldest first
	looking     int      // workers on their way to the list

	closed bool
	idle   chan struct{} // made by Close, closed when no task is left
}

// New makes empty queues.
func New[K comparable](o Options) *Queues[K] {
	if o.PerKey == 0 {
		o.PerKey = 1024
	}
	if o.Total == 0 {
		o.Total = 65536
	}
	return &Queues[K]{opts: o, lanes: map[K]*lane[K]{}}
}

// Submit queues a task and returns at once. The task runs on a goroutine of the
// queues; a panic in it is not caught.
func (q *Queues[K]) Submit(key K, mode Mode, run func()) error {
	// Those who try again and again must not keep the workers from their lock.
	if q.full() {
		return ErrFull
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	l := q.lanes[key]
	if q.full() || l != nil && l.size() >= q.opts.PerKey {
		q.mu.Unlock()
		return ErrFull
	}
	if l == nil {
		l = &lane[K]{key: key}
		q.lanes[key] = l
	}
	l.queue = append(l.queue, task{run, mode})
	q.tasks.Add(1)
	hire := q.list(l)
	q.mu.Unlock()
	if hire {
		go q.work()
	}
	return nil
}

func (q *Queues[K]) full() bool { return q.tasks.Load() >= int64(q.opts.Total) }

// Len counts unfinished tasks.
func (q *Queues[K]) Len() int { return int(q.tasks.Load()) }

// Close refuses new tasks and waits until those accepted have run, or ctx ends.
// It may be repeated.
func (q *Queues[K]) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	if q.idle == nil {
		q.idle = make(chan struct{})
		if q.tasks.Load() == 0 {
			close(q.idle)
		}
	}
	q.mu.Unlock()
	select {
	case <-q.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
