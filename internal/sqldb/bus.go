package sqldb

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/tholehq/thole/internal/strictjson"
)

// note wakes the subscribers of a topic. Notes carry no facts: a subscriber
// reads what changed from the store, so a lost or repeated note costs time only.
type note struct {
	Topic string `json:"t"`
	Key   string `json:"k"`
}

// bus hands committed notes to subscribers: in process on SQLite, through
// NOTIFY on PostgreSQL.
type bus struct {
	listen func(ctx context.Context, publish func([]note)) // nil: in process only
	stop   context.CancelFunc
	done   chan struct{}

	mu     sync.RWMutex // guards what follows
	subs   map[string]map[*func(string)]struct{}
	closed bool
}

func newBus(listen func(context.Context, func([]note))) *bus {
	return &bus{listen: listen, subs: map[string]map[*func(string)]struct{}{}}
}

func (b *bus) subscribe(topic string, fn func(key string)) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return func() {}
	}
	if b.listen != nil && b.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		b.stop, b.done = stop, make(chan struct{})
		go func() {
			defer close(b.done)
			b.listen(ctx, b.publish)
		}()
	}
	id := &fn
	if b.subs[topic] == nil {
		b.subs[topic] = map[*func(string)]struct{}{}
	}
	b.subs[topic][id] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs[topic], id)
		if len(b.subs[topic]) == 0 {
			delete(b.subs, topic)
		}
	}
}

// publish notifies subscribers. A note without a topic says that any may have been
// missed and goes to all with an empty key.
func (b *bus) publish(notes []note) {
	if len(notes) == 0 {
		return
	}
	type call struct {
		fn  func(string)
		key string
	}
	var calls []call
	b.mu.RLock()
	for _, n := range notes {
		for topic, subs := range b.subs {
			if n.Topic != "" && n.Topic != topic {
				continue
			}
			for fn := range subs {
				calls = append(calls, call{*fn, n.Key})
			}
		}
	}
	b.mu.RUnlock()
	for _, c := range calls {
		c.fn(c.key)
	}
}

func (b *bus) close() {
	b.mu.Lock()
	b.closed = true
	stop, done := b.stop, b.done
	b.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// maxPayload keeps below PostgreSQL's limit of 8000 bytes for one NOTIFY.
const maxPayload = 7900

// encodeNotes makes one payload for all notes of a transaction; too many become
// one that wakes everybody.
func encodeNotes(notes []note) string {
	data, err := json.Marshal(notes)
	if err != nil || len(data) > maxPayload {
		return "[{}]"
	}
	return string(data)
}

func decodeNotes(payload string) []note {
	var notes []note
	if strictjson.Unmarshal([]byte(payload), &notes) != nil {
		return []note{{}} // an unknown form from a newer process: read everything again
	}
	return notes
}
