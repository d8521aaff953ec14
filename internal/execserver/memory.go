package execserver

import (
	"context"
	"sync"
)

// Memory bounds what the server holds for one session and its connection, in bytes. Zero
// fields take the defaults, together 512 MiB. Requests that wait have bounds of their own.
type Memory struct {
	Kept    int64 // output of processes; beyond it the oldest goes, of closed processes first. Default 128 MiB
	Input   int64 // written to processes and not taken by them; beyond it writes are refused. Default 64 MiB
	Bodies  int64 // of http requests and their answers; beyond it requests are refused. Default 160 MiB
	Answers int64 // files and long polls on their way to the client; beyond it they wait. Default 160 MiB
}

func (m Memory) withDefaults() Memory {
	for _, d := range []struct {
		to  *int64
		def int64
	}{{&m.Kept, 128 << 20}, {&m.Input, 64 << 20}, {&m.Bodies, 160 << 20}, {&m.Answers, 160 << 20}} {
		if *d.to <= 0 {
			*d.to = d.def
		}
	}
	return m
}

// held are the budgets of one session.
type held struct {
	kept, input, bodies, answers budget
	// sending bounds the streams that have output in hand and wait for the client to read.
	sending chan struct{}
}

// sendingStreams is how many at a time have a chunk and its encoded form: 25 MiB.
const sendingStreams = 256

func newHeld(m Memory) *held {
	return &held{
		kept: budget{limit: m.Kept}, input: budget{limit: m.Input}, bodies: budget{limit: m.Bodies}, answers: budget{limit: m.Answers},
		sending: make(chan struct{}, sendingStreams),
	}
}

// copies is how often the bytes of an answer are in memory at once: as they were read, and
// encoded, which takes a third more, in a buffer that grew.
const copies = 3

// budget counts bytes against a limit. One user of any size fits an empty budget, or a
// small limit would make large requests impossible for ever.
type budget struct {
	limit int64

	mu   sync.Mutex // guards the rest
	used int64
	room chan struct{} // closed when something was given back; nil without a waiter
}

// take reports whether n bytes fit, and counts them if so.
func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(n)
}

func (b *budget) takeLocked(n int64) bool {
	if b.used > 0 && b.used+n > b.limit {
		return false
	}
	b.used += n
	return true
}

// wait takes n bytes once they fit. It reports false when ctx ended first.
func (b *budget) wait(ctx context.Context, n int64) bool {
	for {
		b.mu.Lock()
		if b.takeLocked(n) {
			b.mu.Unlock()
			return true
		}
		if b.room == nil {
			b.room = make(chan struct{})
		}
		room := b.room
		b.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// give returns n bytes.
func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// count adds n bytes, fit or not, and reports by how many the budget is exceeded.
func (b *budget) count(n int64) (over int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	return b.used - b.limit
}
