// Package ringlog keeps the newest output of something that may print for ever:
// chunks with rising sequence numbers, bounded in bytes and in chunks. Old chunks
// are dropped whole from the front; a reader sees the loss as a gap in the
// numbers. It does not interpret what it keeps.
package ringlog

import (
	"bytes"
	"sync"
)

// Chunk is one append. Seq counts from 1; Tag is the caller's, such as a stream.
type Chunk struct {
	Seq  uint64
	Tag  uint8
	Data []byte // must not be changed
}

// Log is safe for concurrent use.
type Log struct {
	maxBytes, maxChunks int

	mu      sync.Mutex // guards all below
	chunks  []Chunk    // a ring of n from head
	head, n int
	bytes   int
	next    uint64
	closed  bool
	changed chan struct{} // made by a waiter, closed by the next change
}

// New makes an empty log. Both bounds must be positive; the newest chunk is kept
// even if it alone is over the byte bound.
func New(maxBytes, maxChunks int) *Log {
	return &Log{maxBytes: maxBytes, maxChunks: maxChunks, next: 1}
}

// Append keeps a copy of data and returns its number, 0 after Close.
func (l *Log) Append(tag uint8, data []byte) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0
	}
	l.push(Chunk{Seq: l.next, Tag: tag, Data: bytes.Clone(data)})
	l.bytes += len(data)
	for l.n > l.maxChunks || l.bytes > l.maxBytes && l.n > 1 {
		l.drop()
	}
	return l.step()
}

// Mark uses up a number without keeping anything, for events that share the
// numbering of the output. It returns 0 after Close.
func (l *Log) Mark() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0
	}
	return l.step()
}

// Close wakes the waiters for good; what is kept stays readable.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake()
}

// View is what Read found.
type View struct {
	Chunks []Chunk
	Next   uint64 // the next number to be given
	First  uint64 // the oldest number kept, Next when none is
	Closed bool
	// Changed is closed by the next Append, Mark or Close; it is closed already
	// when the log is.
	Changed <-chan struct{}
}

// Read returns kept chunks after a number, oldest first: as many as fit maxBytes
// but at least one, all for maxBytes <= 0. To wait, select on Changed and read
// again; nothing between the two can be missed.
func (l *Log) Read(after uint64, maxBytes int) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := View{Next: l.next, First: l.next, Closed: l.closed}
	if l.n > 0 {
		v.First = l.at(0).Seq
	}
	size := 0
	for i := l.find(after); i < l.n; i++ {
		c := l.at(i)
		size += len(c.Data)
		if maxBytes > 0 && size > maxBytes && len(v.Chunks) > 0 {
			break
		}
		v.Chunks = append(v.Chunks, *c)
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
		if l.closed {
			close(l.changed)
		}
	}
	v.Changed = l.changed
	return v
}

// Size returns the bytes and chunks kept.
func (l *Log) Size() (bytes, chunks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes, l.n
}

func (l *Log) at(i int) *Chunk { return &l.chunks[(l.head+i)%len(l.chunks)] }

// find returns the index of the first chunk after seq. Marks leave holes in the
// numbers, so it searches.
func (l *Log) find(seq uint64) int {
	lo, hi := 0, l.n
	for lo < hi {
		if mid := (lo + hi) / 2; l.at(mid).Seq <= seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (l *Log) push(c Chunk) {
	if l.n == len(l.chunks) {
		grown := make([]Chunk, max(8, 2*l.n))
		for i := range l.n {
			grown[i] = *l.at(i)
		}
		l.chunks, l.head = grown, 0
	}
	l.n++
	*l.at(l.n - 1) = c
}

func (l *Log) drop() {
	c := l.at(0)
	l.bytes -= len(c.Data)
	*c = Chunk{}
	l.head = (l.head + 1) % len(l.chunks)
	l.n--
}

func (l *Log) step() uint64 {
	seq := l.next
	l.next++
	l.wake()
	return seq
}

func (l *Log) wake() {
	if l.changed != nil {
		select {
		case <-l.changed:
			return // already closed for good
		default:
		}
		close(l.changed)
		if !l.closed {
			l.changed = nil
		}
	}
}
