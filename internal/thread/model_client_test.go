package thread_test

import (
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/thread"
	"pgregory.net/rapid"
)

// client is one subscriber with its own view, built only from what it received.
type client struct {
	w      *world
	sub    *thread.Subscription
	deltas bool
	lazy   bool // reads nothing until it is closed
	seq    uint64
	upTo   uint64 // of the snapshot; a resuming client reaches it by events
	status event.Status
	known  bool // status has been received, or was in the snapshot
	items  map[thole.ItemID]string
	open   map[thole.ItemID]bool
	pend   map[thole.AskID]bool
	over   bool
}

func (w *world) join(o thread.SubscribeOptions, lazy bool) *client {
	sub, err := w.m.Subscribe(bg, me, w.id, o)
	if err != nil {
		w.t.Fatalf("subscribe: %v", err)
	}
	s := sub.Snapshot
	c := &client{
		w: w, sub: sub, deltas: !o.NoDeltas, lazy: lazy, seq: s.Seq, upTo: s.Seq, status: s.Thread.Status, known: true,
		items: map[thole.ItemID]string{}, open: map[thole.ItemID]bool{}, pend: map[thole.AskID]bool{},
	}
	w.snapshotMatches(s)
	if o.After != nil {
		c.seq, c.known = *o.After, false
		// It was here before: what it knew then is the log up to the cursor.
		for _, e := range w.reference().events[:*o.After] {
			c.fact(e)
		}
	} else {
		if s.Open != nil {
			for _, it := range s.Open.Items {
				c.items[it.ID], c.open[it.ID] = it.Text, true
			}
		}
		for _, a := range s.Asks {
			c.pend[a.Ask.ID] = true
		}
	}
	w.clients = append(w.clients, c)
	return c
}

// snapshotMatches checks a snapshot against the log up to its number.
func (w *world) snapshotMatches(s thread.Snapshot) {
	r := w.reference()
	if s.Seq != r.seq || s.Thread.Status != r.status(true) || len(s.Asks) != len(r.pending) || (s.Open != nil) != (r.open != "") {
		w.t.Fatalf("snapshot at %d %+v with %d asks; log at %d %+v with %d", s.Seq, s.Thread.Status, len(s.Asks), r.seq, r.status(true), len(r.pending))
	}
	if s.Open == nil {
		return
	}
	for _, it := range s.Open.Items {
		want, ok := r.items[it.ID]
		if !ok || !want.open && it.Text != want.text {
			w.t.Fatalf("snapshot shows %q for %s, the log %+v", it.Text, it.ID, want)
		}
		if said, mine := w.agent.items[it.ID]; mine && want.open && it.Text != said {
			w.t.Fatalf("snapshot shows %q in flight, the agent said %q", it.Text, said)
		}
	}
}

// keep attaches a client that stays to the end.
func (w *world) keep() { w.join(thread.SubscribeOptions{Buffer: 1 << 20}, false) }

func (w *world) attach() {
	if len(w.clients) > 6 {
		return
	}
	o := thread.SubscribeOptions{NoDeltas: rapid.Bool().Draw(w.d, "no deltas")}
	if rapid.Bool().Draw(w.d, "resume") {
		after := rapid.Uint64Range(1, w.thread().Seq).Draw(w.d, "after")
		o.After = &after
	}
	lazy := rapid.IntRange(0, 3).Draw(w.d, "lazy") == 0
	if lazy {
		o.Buffer = rapid.IntRange(1, 8).Draw(w.d, "buffer")
	} else {
		o.Buffer = 1 << 20
	}
	w.join(o, lazy)
}

func (w *world) detach() {
	if len(w.clients) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.clients)-1).Draw(w.d, "client")
	w.clients[i].finish(true)
	w.clients = append(w.clients[:i], w.clients[i+1:]...)
}

// read lets every client that keeps up read to the log's end.
func (w *world) read() {
	end := w.thread().Seq
	for _, c := range w.clients {
		if c.lazy {
			continue
		}
		c.readTo(end)
	}
}

// readTo reads to the log's end and on, until the ephemeral events after it
// (deltas, status) have made the client agree with the log.
func (c *client) readTo(end uint64) {
	late := time.After(poll.Limit)
	for c.seq < end || c.differs() != "" {
		select {
		case batch, ok := <-c.sub.Events:
			if !ok {
				c.w.t.Fatalf("a client that reads was ended: %v", c.sub.Err())
			}
			c.take(batch.Events)
		case <-late:
			c.w.t.Fatalf("a client waits at %d for %d: %s", c.seq, end, c.differs())
		}
	}
}

func (c *client) take(batch []event.Event) {
	for _, e := range batch {
		if e.Seq != 0 {
			if e.Seq != c.seq+1 {
				c.w.t.Fatalf("client got %d behind %d", e.Seq, c.seq)
			}
			c.seq = e.Seq
			c.fact(e)
			continue
		}
		switch e.Kind {
		case event.ThreadStatus:
			if c.known && *e.Data.Status == c.status {
				c.w.t.Fatalf("client was told an unchanged status %+v", c.status)
			}
			c.status, c.known = *e.Data.Status, true
		case event.ItemDelta:
			c.delta(e)
		default:
			c.w.t.Fatalf("ephemeral %s", e.Kind)
		}
	}
}

func (c *client) delta(e event.Event) {
	d := e.Data
	if !c.deltas {
		c.w.t.Fatal("a client without deltas got one")
	}
	if !c.open[d.ItemID] {
		c.w.t.Fatalf("delta for item %s that is not open for the client", d.ItemID)
	}
	have := c.items[d.ItemID]
	if d.Offset > int64(len(have)) {
		c.w.t.Fatalf("delta of %s at %d, client has %d", d.ItemID, d.Offset, len(have))
	}
	c.items[d.ItemID] = have[:d.Offset] + d.Delta
	if len(c.items[d.ItemID]) < len(have) {
		c.w.t.Fatalf("text of %s went back", d.ItemID)
	}
}

func (c *client) fact(e event.Event) {
	d := e.Data
	switch e.Kind {
	case event.ItemStarted:
		c.items[d.Item.ID], c.open[d.Item.ID] = d.Item.Text, true
	case event.ItemCompleted:
		// What streamed is the beginning of what is final.
		if have := c.items[d.Item.ID]; c.deltas && c.open[d.Item.ID] && d.Item.Kind == event.ItemMessage && c.seq > c.upTo && have != d.Item.Text {
			c.w.t.Fatalf("item %s streamed %q and completed as %q", d.Item.ID, have, d.Item.Text)
		}
		c.open[d.Item.ID] = false
	case event.AskRequested:
		c.pend[d.Ask.ID] = true
	case event.AskResolved:
		delete(c.pend, d.AskID)
	}
}

// differs says what the client believes and the log does not, "" if nothing.
func (c *client) differs() string {
	r := c.w.reference()
	if c.known && c.status != r.status(true) {
		return fmt.Sprintf("client believes %+v, the log says %+v", c.status, r.status(true))
	}
	if len(c.pend) != len(r.pending) {
		return fmt.Sprintf("client has %d asks, the log %d", len(c.pend), len(r.pending))
	}
	if !c.deltas {
		return ""
	}
	for id, said := range c.w.agent.items {
		if r.items[id].open && c.items[id] != said {
			return fmt.Sprintf("client has %q of %s, the agent said %q", c.items[id], id, said)
		}
	}
	return ""
}

// finish closes the subscription after reading what is left, which must be a
// gapless continuation even for a reader that was too slow.
func (c *client) finish(close bool) {
	if c.over {
		return
	}
	c.over = true
	for {
		select {
		case batch, ok := <-c.sub.Events:
			if !ok {
				if err := c.sub.Err(); !endedWell(err) {
					c.w.t.Fatalf("subscription ended with %v", err)
				}
				return
			}
			c.take(batch.Events)
			continue
		default:
		}
		break
	}
	if close {
		c.sub.Close()
		c.sub.Close()
	}
}
