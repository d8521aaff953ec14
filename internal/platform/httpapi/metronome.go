package httpapi

import (
	"sync"
	"time"
)

// metronome is the clock of all streams: one timer wakes whoever waits, and does
// not run when nobody does.
type metronome struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

// wait returns at the next tick, at most one period away.
func (m *metronome) wait() { <-m.beat() }

func (m *metronome) beat() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == nil {
		m.next = make(chan struct{})
		time.AfterFunc(coalesce-time.Duration(time.Now().UnixNano())%coalesce, m.strike)
	}
	return m.next
}

func (m *metronome) strike() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.next)
	m.next = nil
}
