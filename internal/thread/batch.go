package thread

import (
	"sync"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Batch is what one commit published, durable and ephemeral events in order. All
// subscribers of a thread share it: read, never write.
type Batch struct {
	Events []event.Event
	// Before is the thread as it was before the first event. It is nil for batches
	// read from the log, whose reader resumed after a cursor, and for those of Watch.
	Before *fold.State
	// Revision orders what this process publishes of all threads. A snapshot has seen
	// what was published of its thread up to its own. 0 for batches read from the log.
	Revision uint64

	mu      sync.Mutex // guards encoded
	encoded map[any]any
}

// Encode returns what encode returned to its first caller with key: subscribers that
// send the same bytes make them once.
func (b *Batch) Encode(key any, encode func() any) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, ok := b.encoded[key]; ok {
		return v
	}
	v := encode()
	if b.encoded == nil {
		b.encoded = map[any]any{}
	}
	b.encoded[key] = v
	return v
}

// Seq is the sequence number of the last durable event, 0 when there is none.
func (b *Batch) Seq() (n uint64) {
	for i := range b.Events {
		n = max(n, b.Events[i].Seq)
	}
	return n
}

// withoutDeltas is the batch for subscribers that do not want text as it grows.
func (b *Batch) withoutDeltas() *Batch {
	kept := make([]event.Event, 0, len(b.Events))
	for _, e := range b.Events {
		if e.Kind != event.ItemDelta {
			kept = append(kept, e)
		}
	}
	return &Batch{Events: kept, Before: b.Before, Revision: b.Revision}
}
