package execserver

import "sync"

const (
	laneRequests = 16 << 10 // that wait in a lane
	laneBytes    = 64 << 20 // of them
)

// lane runs file requests of one connection: at most width at once, begun in
// arrival order. With width 1 it also keeps whatever must come after them.
type lane struct {
	width int

	mu      sync.Mutex // guards the rest
	queue   []waiting
	bytes   int // of what waits
	running int
	ended   bool
	wg      sync.WaitGroup
}

// waiting is a request of some size in its turn.
type waiting struct {
	size int
	run  func()
}

// do runs f in its turn. It reports false, and f will not run, when so much waits already
// that another request of that size is too much. One of any size fits an empty lane.
func (l *lane) do(size int, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return true
	}
	if len(l.queue) >= laneRequests || len(l.queue) > 0 && l.bytes+size > laneBytes {
		return false
	}
	l.queue = append(l.queue, waiting{size, f})
	l.bytes += size
	if l.running < l.width {
		l.running++
		l.wg.Go(l.work)
	}
	return true
}

// after runs f after the requests under way when order is promised (width 1),
// otherwise at once.
func (l *lane) after(size int, f func()) bool {
	l.mu.Lock()
	busy := l.running > 0 && l.width == 1
	l.mu.Unlock()
	if busy {
		return l.do(size, f)
	}
	f()
	return true
}

func (l *lane) work() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		next := l.queue[0]
		l.queue[0] = waiting{}
		l.queue = l.queue[1:]
		l.bytes -= next.size
		l.mu.Unlock()
		next.run()
		l.mu.Lock()
	}
	l.running--
}

// drain drops what has not begun and waits for what has.
func (l *lane) drain() {
	l.mu.Lock()
	l.queue, l.ended = nil, true
	l.mu.Unlock()
	l.wg.Wait()
}
