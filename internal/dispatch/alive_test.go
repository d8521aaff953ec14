package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// silent is a queue that stops answering. It gives away what wakes its dispatcher.
type silent struct {
	queue.Store
	off  *atomic.Bool
	wake *atomic.Pointer[func()]
}

func (s silent) Subscribe(wake func()) (cancel func()) {
	s.wake.Store(&wake)
	return s.Store.Subscribe(wake)
}

func (s silent) Claim(ctx context.Context, c queue.Claim) ([]queue.Lease, error) {
	if s.off.Load() {
		return nil, errors.New("the database is gone")
	}
	return s.Store.Claim(ctx, c)
}

// A dispatcher whose queue does not answer is not alive, and is again when it does.
func TestAlive(t *testing.T) {
	t.Parallel()
	var off atomic.Bool
	var wake atomic.Pointer[func()]
	var ahead atomic.Int64
	r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) {
		c.Queue = silent{c.Queue, &off, &wake}
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	alive := func() bool { return r.disp.Alive() == nil }
	poll.Until(t, "a first look at the queue", alive)
	off.Store(true)
	poll.Until(t, "the loss of the queue", func() bool {
		ahead.Add(int64(time.Hour)) // each time: a look that was under way may still have counted
		err := r.disp.Alive()
		return err != nil && strings.Contains(err.Error(), "not answered")
	})
	off.Store(false)
	(*wake.Load())()
	poll.Until(t, "an answer of the queue", alive)
	if err := dispatch.New(dispatch.Config{}).Alive(); err == nil {
		t.Error("one that was not started is alive")
	}
}
