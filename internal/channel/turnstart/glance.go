package turnstart

import (
	"context"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
)

// glance is the survey of a thread that a probe took at its word and began to
// check.
type glance struct {
	batch thole.BatchID
	link  *link
	was   wireView      // what the probe judged
	done  chan struct{} // closed when what follows is set
	view  wireView
	th    wireThread
	queue []wireQueued
	heard int // of the link, when the survey ended
	err   error
}

// glance surveys and leaves the answer to the proposal of a batch.
func (c *Channel) glance(ctx context.Context, l *link, was wireView, id thole.AttachmentID, batch thole.BatchID) {
	g := &glance{batch: batch, link: l, was: was, done: make(chan struct{})}
	c.mu.Lock()
	c.glances[id] = g
	c.mu.Unlock()
	go func() { // ends with its calls' own time, or with the connection
		defer close(g.done)
		g.view, g.th, g.queue, g.err = l.survey(context.WithoutCancel(ctx))
		g.heard = l.heard()
	}()
}

// confirm says why nothing may be sent although the probe let it pass. A batch that
// was probed without a glance was surveyed then.
func (c *Channel) confirm(l *link, id thole.AttachmentID, batch thole.BatchID) error {
	c.mu.Lock()
	g := c.glances[id]
	delete(c.glances, id)
	c.mu.Unlock()
	if g == nil || g.batch != batch {
		return nil
	}
	<-g.done
	if g.err != nil {
		return g.err
	}
	was, err := attachment.Read(g.was.Settings)
	if err != nil {
		return err
	}
	now, err := attachment.Read(g.view.Settings)
	switch {
	case err != nil:
		return err
	case g.link != l:
		return fmt.Errorf("the connection was made anew")
	case !g.th.idle():
		return fmt.Errorf("the thread is %s", g.th.Status.Type)
	case len(g.queue) > 0:
		return fmt.Errorf("%d messages are queued in the thread already", len(g.queue))
	case !now.Equal(was) || l.heard() != g.heard:
		return fmt.Errorf("the session's settings changed")
	}
	return nil
}
