package serial

// lane is one key's state. It exists while the key has tasks.
type lane[K comparable] struct {
	key     K
	queue   []task // waiting, from head on
	head    int
	running int
	alone   bool // the running task is exclusive
	listed  bool // in the ready list
	next    *lane[K]
}

type task struct {
	run  func()
	mode Mode
}

func (l *lane[K]) size() int { return len(l.queue) - l.head + l.running }

// admits reports whether the head of the queue may run now.
func (l *lane[K]) admits() bool {
	if l.head == len(l.queue) {
		return false
	}
	return l.running == 0 || l.queue[l.head].mode == Shared && !l.alone
}

func (l *lane[K]) take() task {
	t := l.queue[l.head]
	l.queue[l.head] = task{}
	l.head++
	switch {
	case l.head == len(l.queue):
		l.queue, l.head = l.queue[:0], 0
	case l.head >= 64 && l.head*2 >= len(l.queue): // a lane that never empties must not creep
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	l.running++
	l.alone = t.mode == Exclusive
	return t
}

// list puts a lane whose head may run at the end of the ready list. It reports
// whether nobody is on the way there: the caller then starts a worker.
func (q *Queues[K]) list(l *lane[K]) (hire bool) {
	if !l.listed && l.admits() {
		l.listed, l.next = true, nil
		if q.ready == nil {
			q.ready = l
		} else {
			q.last.next = l
		}
		q.last = l
	}
	if hire = q.ready != nil && q.looking == 0; hire {
		q.looking++
	}
	return hire
}

// work takes one task after the other and ends when no lane is ready. Before it runs
// a task it starts a worker for what else is ready, since the task may block.
func (q *Queues[K]) work() {
	q.mu.Lock()
	for {
		l := q.ready
		if l == nil {
			q.looking--
			q.mu.Unlock()
			return
		}
		q.ready, l.listed, l.next = l.next, false, nil
		t := l.take()
		q.looking--
		hire := q.list(l) // shared tasks after it may run with it
		q.mu.Unlock()
		if hire {
			go q.work()
		}
		t.run()
		q.mu.Lock()
		q.looking++
		q.finish(l)
	}
}

func (q *Queues[K]) finish(l *lane[K]) {
	l.running--
	if q.tasks.Add(-1) == 0 && q.idle != nil {
		close(q.idle)
	}
	if l.size() > 0 {
		q.list(l) // this worker looks itself
		return
	}
	delete(q.lanes, l.key)
}
