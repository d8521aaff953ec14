package appserver

import (
	"context"
	"errors"
	"maps"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/thread"
)

// News is what every connection hears of all threads: that they begin, their names,
// their status. For a thread that the connection is subscribed to, the subscription
// sends them in the order of its other notifications. Both sources number what they
// publish alike, so each piece of news is sent once, however the client subscribes and
// unsubscribes meanwhile, and none that is older than a snapshot comes after it.

// news is how far a connection has the news. conn.mu guards it.
type news struct {
	// got is the revision of the newest batch of the watch, waiting how many batches wait
	// for answers, and passed the revision up to which none does.
	got, passed uint64
	waiting     int
	// sent is the revision up to which a subscription that is over has sent its thread's
	// news, as long as the watch may still bring some of it.
	sent map[thole.ThreadID]uint64
}

// maxWaiting is how many batches wait for answers before the next one waits in the watch.
const maxWaiting = 256

// watch begins to send news.
func (c *conn) watch() error {
	in, err := c.srv.cfg.Threads.Watch(context.Background(), c.actor)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		in.Close()
		return nil
	}
	c.pumps.Go(func() {
		defer in.Close()
		if c.follow(in, func(b *thread.Batch) bool { return c.deliverNews(in, b) }) {
			return
		}
		if err := in.Err(); errors.Is(err, thread.ErrSlow) {
			c.slow()
		} else if err != nil {
			c.lost(err)
		}
	})
	return nil
}

// deliverNews queues a batch of one thread, after the answers to the requests of that
// thread. It does not wait for those: other threads have news too.
func (c *conn) deliverNews(in *thread.Subscription, batch *thread.Batch) bool {
	frames := c.newsFrames(batch)
	if len(frames) > 0 && !c.room(func() bool { return in.Err() == nil }) {
		return false
	}
	id := batch.Events[0].Thread
	done := make(chan struct{})
	c.mu.Lock()
	c.news.got = batch.Revision
	c.news.waiting++
	full := c.news.waiting > maxWaiting
	c.afterHolds(id, func() {
		defer close(done)
		sent := c.news.sent[id]
		if c.news.waiting--; c.news.waiting == 0 {
			c.news.passed = c.news.got
			maps.DeleteFunc(c.news.sent, func(_ thole.ThreadID, at uint64) bool { return at <= c.news.passed })
		}
		var births, rest []*frame
		for _, f := range frames {
			if f.birth {
				births = append(births, f)
			} else {
				rest = append(rest, f)
			}
		}
		s := c.subs[id]
		switch {
		case s != nil && batch.Revision > s.sent:
			s.missed = append(s.missed, rest...)
			rest = nil
		case s != nil || batch.Revision <= sent:
			rest = nil
		}
		c.pushLocked(append(births, rest...))
	})
	c.mu.Unlock()
	if full {
		<-done
	}
	return c.rpc.Err() == nil
}

// pushLocked queues what the client takes of frames.
func (c *conn) pushLocked(frames []*frame) { c.sendLocked(pick(c.client, frames)) }

// newsFrames encodes a batch, once for all connections.
func (c *conn) newsFrames(batch *thread.Batch) []*frame {
	return batch.Encode(c.srv, func() any {
		var out []*frame
		for i := range batch.Events {
			e := &batch.Events[i]
			had := len(out)
			if e.Kind == event.ThreadCreated {
				if f := c.srv.created(e); f != nil {
					out = append(out, f)
				}
			} else {
				out = c.srv.coarse(out, e, "")
			}
			for _, f := range out[had:] {
				f.birth, f.revision = e.Kind == event.ThreadCreated, batch.Revision
			}
		}
		return out
	}).([]*frame)
}
