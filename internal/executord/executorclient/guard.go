package executorclient

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
)

// A call that takes long asks every probeEvery whether executord still answers
// anybody, and is given up when it did not a few times in a row: a process that was
// stopped, or that waits for a dead disk, keeps its connections open for ever.
const (
	probeEvery = 10 * time.Second
	maxSilent  = 3
)

var errSilent = thole.Errorf(thole.CodeUnavailable, "the executor does not answer any more")

// guard returns a context that ends with errSilent when executord does, until
// release.
func (c *Client) guard(ctx context.Context) (guarded context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var (
		mu     sync.Mutex // guards what follows
		timer  *time.Timer
		silent int
	)
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(c.probe, func() {
		mu.Lock()
		defer mu.Unlock()
		if silent++; c.healthy(ctx) {
			silent = 0
		}
		if silent == maxSilent {
			cancel(errSilent)
		}
		if ctx.Err() == nil {
			timer.Reset(c.probe)
		}
	})
	return ctx, func() {
		cancel(nil)
		timer.Stop()
	}
}

func (c *Client) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.probe)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

// guarded is an answer whose end releases its guard.
type guarded struct {
	io.ReadCloser
	release func()
}

func (g guarded) Close() error {
	defer g.release()
	return g.ReadCloser.Close()
}
