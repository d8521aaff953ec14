package thread

import (
	"context"
	"sync"

	"github.com/tholehq/thole/event"
)

const (
	defaultBuffer = 1024
	// maxPendingBytes bounds roughly what a stalled reader may hold back.
	maxPendingBytes = 192 << 10
	// handover is how many batches go straight to the reader without a goroutine.
	handover = 8
)

// subscriber is one reader's bounded queue. push never blocks. A goroutine
// exists only while the reader lags.
type subscriber struct {
	ch       chan *Batch
	limit    int
	noDeltas bool
	spawn    func(func()) // starts a goroutine that the machine waits for
	slow     func()       // called when the reader is given up

	mu      sync.Mutex // guards what follows; never held while blocking
	pending []*Batch
	n, size int
	pumping bool // a pump is between taking a batch and having sent it
	ended   bool
	err     error
	abort   chan struct{} // closed: the pump must not wait for the reader any more
	aborted bool
}

func newSubscriber(o SubscribeOptions, spawn func(func()), slow func()) *subscriber {
	limit := o.Buffer
	if limit <= 0 {
		limit = defaultBuffer
	}
	return &subscriber{
		ch: make(chan *Batch, handover), limit: limit, noDeltas: o.NoDeltas, spawn: spawn, slow: slow, abort: make(chan struct{}),
	}
}

// push hands over a batch that is shared with other subscribers.
func (s *subscriber) push(batch *Batch) {
	if len(batch.Events) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if !s.pumping && len(s.pending) == 0 {
		select {
		case s.ch <- batch:
			return
		default:
		}
	}
	had := s.n
	s.pending = append(s.pending, batch)
	s.n += len(batch.Events)
	s.size += weight(batch.Events)
	if had > 0 && (s.n > s.limit || s.size > maxPendingBytes) {
		if !s.noDeltas { // else there is nothing to merge, and batches of different threads stay apart
			s.mergeLocked()
		}
		if s.n > s.limit || s.size > maxPendingBytes {
			s.endLocked(ErrSlow, false)
			s.slow()
			return
		}
	}
	s.pumpLocked()
}

func (s *subscriber) pumpLocked() {
	if !s.pumping {
		s.pumping = true
		s.spawn(s.pump)
	}
}

// pump sends what is pending until nothing is left.
func (s *subscriber) pump() {
	for {
		s.mu.Lock()
		if len(s.pending) == 0 || s.aborted {
			s.pumping = false
			if s.ended {
				close(s.ch)
			}
			s.mu.Unlock()
			return
		}
		batch := s.pending[0]
		s.pending = s.pending[1:]
		s.n -= len(batch.Events)
		s.size -= weight(batch.Events)
		s.mu.Unlock()
		if !s.send(batch) {
			continue
		}
	}
}

func (s *subscriber) send(batch *Batch) bool {
	select {
	case s.ch <- batch:
		return true
	case <-s.abort:
		return false
	}
}

// end closes the subscription: after what is pending with drain, at once
// without. The first error stays.
func (s *subscriber) end(err error, drain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(err, drain)
}

func (s *subscriber) endLocked(err error, drain bool) {
	first := !s.ended
	if first {
		s.ended, s.err = true, err
	}
	if !drain && !s.aborted {
		s.aborted = true
		s.pending, s.n, s.size = nil, 0, 0
		close(s.abort)
	}
	if first && !s.pumping {
		close(s.ch)
	}
}

func (s *subscriber) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *subscriber) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// mergeLocked joins neighbouring deltas of one stream. State transitions stay.
func (s *subscriber) mergeLocked() {
	var merged []event.Event
	for _, batch := range s.pending {
		for _, e := range batch.Events {
			if last := len(merged) - 1; last >= 0 && Continues(&merged[last], &e) {
				merged[last].Data.Delta += e.Data.Delta
				continue
			}
			merged = append(merged, e)
		}
	}
	whole := &Batch{Events: merged, Before: s.pending[0].Before, Revision: s.pending[len(s.pending)-1].Revision}
	s.pending, s.n, s.size = []*Batch{whole}, len(merged), weight(merged)
}

// Continues reports whether b goes on where the delta a ended.
func Continues(a, b *event.Event) bool {
	return a.Kind == event.ItemDelta && b.Kind == event.ItemDelta && a.Data.ItemID == b.Data.ItemID &&
		a.Data.Stream == b.Data.Stream && a.Data.Offset+int64(len(a.Data.Delta)) == b.Data.Offset
}

// weight estimates what keeping a batch costs.
func weight(batch []event.Event) int {
	n := 0
	for i := range batch {
		d := &batch[i].Data
		n += 320 + len(d.Delta) + len(d.Text)
		if d.Item != nil {
			n += len(d.Item.Text) + len(d.Item.Summary)
			if d.Item.Command != nil {
				n += len(d.Item.Command.Output)
			}
			for _, in := range d.Item.Content {
				n += len(in.Text) + len(in.URL)
			}
		}
		for _, in := range d.Input {
			n += len(in.Text) + len(in.URL)
		}
	}
	return n
}

// replay makes the subscriber begin with older events, read page by page, while
// live ones wait after them. It is called before the first push.
func (s *subscriber) replay(after, upTo uint64, tail []event.Event, read func(ctx context.Context, after uint64) ([]event.Event, error)) {
	s.mu.Lock()
	s.pumping = true
	s.mu.Unlock()
	s.spawn(func() {
		ctx := endsWith{context.Background(), s.abort}
		for after < upTo {
			page, err := read(ctx, after)
			if err == nil && len(page) == 0 {
				err = errGap(after)
			}
			if err != nil {
				s.end(err, false)
				break
			}
			for len(page) > 0 && page[len(page)-1].Seq > upTo {
				page = page[:len(page)-1]
			}
			after = page[len(page)-1].Seq
			if !s.send(&Batch{Events: page}) {
				break
			}
		}
		if after >= upTo && len(tail) > 0 {
			s.send(&Batch{Events: tail})
		}
		s.pump()
	})
}

// endsWith is a context that ends when done is closed.
type endsWith struct {
	context.Context
	done <-chan struct{}
}

func (c endsWith) Done() <-chan struct{} { return c.done }

func (c endsWith) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}
