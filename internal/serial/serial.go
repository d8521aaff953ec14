// Package serial runs tasks in keyed queues: tasks of one key run in the order
// they came, tasks of different keys at the same time. A task is exclusive, or
// shared and then runs beside its shared neighbours. A key without tasks costs
// nothing: no goroutine and no memory. Queues are bounded and refuse when full.
package serial

import (
	"context"
	"errors"
	"sync"
)

// Mode says what a task tolerates beside it under its key.
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
	PerKey int // tasks waiting under one key; default 1,024
	Total  int // tasks waiting under all keys; default 65,536
}

// Queues holds the tasks of all keys.
type Queues[K comparable] struct {
	opts Options

	mu      sync.Mutex // guards all below and every lane
	lanes   map[K]*lane[K]
	free    []*lane[K] // a few empty lanes, so that a key that comes and goes does not allocate
	waiting int
	closed  bool
	idle    chan struct{} // made by Close, closed when the last lane goes
}

// lane is one key's state; it exists while the key has tasks.
type lane[K comparable] struct {
	key     K
	queue   []task // from head on
	head    int
	running int
	alone   bool // the running task is exclusive
}

type task struct {
	run  func()
	mode Mode
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
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	l := q.lanes[key]
	if l == nil {
		l = q.newLane(key)
	} else if q.waiting >= q.opts.Total || len(l.queue)-l.head >= q.opts.PerKey {
		q.mu.Unlock()
		return ErrFull
	}
	if l.head == len(l.queue) && l.admits(mode) {
		l.start(mode)
		q.mu.Unlock()
		go q.work(l, task{run, mode})
		return nil
	}
	l.queue = append(l.queue, task{run, mode})
	q.waiting++
	q.mu.Unlock()
	return nil
}

// Do queues a task and waits for it. When ctx ends first the task is abandoned:
// it does not run if it has not begun, and Do does not wait if it has.
func (q *Queues[K]) Do(ctx context.Context, key K, mode Mode, run func()) error {
	done := make(chan struct{})
	if err := q.Submit(key, mode, func() {
		defer close(done)
		if ctx.Err() == nil {
			run()
		}
	}); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Waiting counts tasks that have not begun.
func (q *Queues[K]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Keys counts keys with tasks.
func (q *Queues[K]) Keys() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lanes)
}

// Close refuses new tasks and waits until those accepted have run, or ctx ends.
// It may be repeated.
func (q *Queues[K]) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	if q.idle == nil {
		q.idle = make(chan struct{})
		if len(q.lanes) == 0 {
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

func (l *lane[K]) admits(m Mode) bool {
	return l.running == 0 || m == Shared && !l.alone
}

func (l *lane[K]) start(m Mode) {
	l.running++
	l.alone = m == Exclusive
}

func (q *Queues[K]) newLane(key K) *lane[K] {
	var l *lane[K]
	if n := len(q.free); n > 0 {
		l, q.free = q.free[n-1], q.free[:n-1]
	} else {
		l = new(lane[K])
	}
	l.key = key
	q.lanes[key] = l
	return l
}

// work runs a task and goes on with the lane's next one, starting a goroutine
// only for shared tasks that can run beside it.
func (q *Queues[K]) work(l *lane[K], t task) {
	for {
		t.run()
		t.run = nil
		q.mu.Lock()
		l.running--
		mine := false
		for l.head < len(l.queue) && l.admits(l.queue[l.head].mode) {
			next := q.take(l)
			l.start(next.mode)
			if !mine {
				t, mine = next, true
				continue
			}
			go q.work(l, next)
		}
		if !mine {
			if l.running == 0 {
				q.drop(l)
			}
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
	}
}

func (q *Queues[K]) take(l *lane[K]) task {
	t := l.queue[l.head]
	l.queue[l.head] = task{}
	l.head++
	q.waiting--
	switch {
	case l.head == len(l.queue):
		l.queue, l.head = l.queue[:0], 0
	case l.head >= 64 && l.head*2 >= len(l.queue): // a lane that never empties must not creep
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	return t
}

const (
	maxFree     = 64 // lanes kept for reuse
	maxFreeSize = 64 // and the longest queue one may keep
)

func (q *Queues[K]) drop(l *lane[K]) {
	delete(q.lanes, l.key)
	if len(q.free) < maxFree && cap(l.queue) <= maxFreeSize {
		var zero K
		l.key = zero
		q.free = append(q.free, l)
	}
	if q.idle != nil && len(q.lanes) == 0 {
		close(q.idle)
	}
}
