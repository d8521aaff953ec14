package execserver

import "sync"

// lane runs file requests of one connection: at most width at once, begun in
// arrival order. With width 1 it also keeps whatever must come after them.
type lane struct {
	width int

	mu      sync.Mutex // guards the rest
	queue   []func()
	running int
	ended   bool
	wg      sync.WaitGroup
}

// do runs f in its turn.
func (l *lane) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.queue = append(l.queue, f)
	if l.running < l.width {
		l.running++
		l.wg.Go(l.work)
	}
}

// after runs f after the requests under way when order is promised (width 1),
// otherwise at once.
func (l *lane) after(f func()) {
	l.mu.Lock()
	busy := l.running > 0 && l.width == 1
	l.mu.Unlock()
	if busy {
		l.do(f)
		return
	}
	f()
}

func (l *lane) work() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		f := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.mu.Unlock()
		f()
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
