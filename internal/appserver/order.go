package appserver

import (
	"slices"

	thole "github.com/tholehq/thole"
)

// The answer to a request precedes the notifications that it causes. A request
// therefore holds back what its connection would hear of its thread, until its answer
// is queued: nothing else waits for it, neither other threads nor other connections.
// A notification waits only for the requests that were there when it came; later ones
// cannot have caused it.

// hold is one request of a thread that has no answer yet.
type hold struct {
	// after is what waits for it, in order; it runs with conn.mu held.
	after []func()
}

// hold begins to hold a thread's notifications back. The function it returns ends that
// and may be repeated.
func (c *conn) hold(id thole.ThreadID) (release func()) {
	h := &hold{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds[id] = append(c.holds[id], h)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.releaseLocked(id, h)
	}
}

func (c *conn) releaseLocked(id thole.ThreadID, h *hold) {
	all := c.holds[id]
	i := slices.Index(all, h)
	if i < 0 {
		return
	}
	if i > 0 { // an older request is not answered: what waited for this one waits for that
		all[i-1].after = append(all[i-1].after, h.after...)
	}
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(c.holds, id)
	} else {
		c.holds[id] = all
	}
	if i == 0 {
		for _, f := range h.after {
			f()
		}
	}
}

// afterHolds calls f, which must not wait, as soon as the present requests of a thread
// are answered: now when there are none. It is called with conn.mu held, as f is.
func (c *conn) afterHolds(id thole.ThreadID, f func()) {
	if all := c.holds[id]; len(all) > 0 {
		last := all[len(all)-1]
		last.after = append(last.after, f)
		return
	}
	f()
}
