package opencode

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/strictjson"
)

// silence is how long the event stream may be quiet: the server sends a heartbeat
// every ten seconds.
const silence = 35 * time.Second

// decodeStream reads server-sent events until the stream or emit ends it. Only data
// lines are used by the server; what cannot be read is skipped.
func decodeStream(r io.Reader, emit func(serverEvent) bool) error {
	for lines := process.NewLines(r); ; {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		var e serverEvent
		if ok && strictjson.Unmarshal(data, &e) == nil && e.Type != "" && !emit(e) {
			return nil
		}
	}
}

// feed keeps the event stream of one server open and sends events to the run that
// listens. After a reconnect the run has to read everything again. It ends
// with ctx.
type feed struct {
	srv    *server
	cancel context.CancelFunc
	done   chan struct{}

	run atomic.Pointer[run] // the turn that listens, until it ends
}

// resync is the event that says "events may be missing".
const resync = "thole.resync"

// startFeed returns when the server has said that it is connected, so that no
// event of a turn started after it is missed.
func startFeed(ctx context.Context, srv *server) (*feed, error) {
	own, cancel := context.WithCancel(context.Background())
	f := &feed{srv: srv, cancel: cancel, done: make(chan struct{})}
	first := make(chan error, 2)
	go f.loop(own, first)
	select {
	case err := <-first:
		if err != nil {
			f.stop()
			return nil, err
		}
		return f, nil
	case <-f.done:
		cancel()
		return nil, thole.Errorf(thole.CodeUnavailable, "opencode ended before it was ready: %s", srv.Diagnosis())
	case <-ctx.Done():
		f.stop()
		return nil, context.Cause(ctx)
	}
}

func (f *feed) stop() {
	f.cancel()
	<-f.done
}

// to directs events to a turn. Between turns they are dropped.
func (f *feed) to(r *run) { f.run.Store(r) }

// deliver hands an event to the turn that listens, as fast as it takes them.
func (f *feed) deliver(ctx context.Context, e serverEvent) bool {
	if r := f.run.Load(); r != nil {
		_ = r.Lock.Do(ctx, func() error { r.hear(e); return nil }) // a turn that is over hears nothing
	}
	return ctx.Err() == nil
}

func (f *feed) loop(ctx context.Context, first chan error) {
	defer close(f.done)
	live := false
	for attempt := 0; ctx.Err() == nil; attempt++ {
		body, err := f.srv.events(ctx)
		if err == nil {
			f.read(ctx, body, func(e *serverEvent) {
				// Only from this word on does the server report what happens.
				if e.Type == "server.connected" && live {
					e.Type = resync
				} else if e.Type == "server.connected" {
					live = true
					first <- nil
				}
			})
		} else if attempt == 0 {
			first <- err
		}
		if f.srv.Dead() {
			return
		}
		_ = backoff.Sleep(ctx, 200*time.Millisecond)
	}
}

// read passes on one connection's events, each of which see may change. It gives
// the connection up when it is silent.
func (f *feed) read(ctx context.Context, body io.ReadCloser, see func(*serverEvent)) {
	defer body.Close()
	quiet := time.AfterFunc(silence, func() { body.Close() })
	defer quiet.Stop()
	_ = decodeStream(body, func(e serverEvent) bool {
		quiet.Stop() // a turn that is slow to listen is not the server's silence
		defer quiet.Reset(silence)
		see(&e)
		return e.Type == "server.heartbeat" || f.deliver(ctx, e)
	})
}
