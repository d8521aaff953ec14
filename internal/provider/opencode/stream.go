package opencode

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
)

// silence is how long the event stream may be quiet: the server sends a heartbeat
// every ten seconds.
const silence = 35 * time.Second

// decodeStream reads server-sent events and hands each to emit until the stream
// or emit ends it. Only data lines are used by the server; what cannot be read is
// skipped.
func decodeStream(r io.Reader, emit func(event) bool) error {
	lines := process.NewLines(r)
	for {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		var e event
		if json.Unmarshal(data, &e) != nil || e.Type == "" {
			continue
		}
		e.Properties = bytes.Clone(e.Properties)
		if !emit(e) {
			return nil
		}
	}
}

// feed keeps the event stream of one server open and tells events to the run that
// listens; between turns they are dropped. After a reconnect the run is told to
// read everything again. It ends with ctx.
type feed struct {
	srv    *server
	cancel context.CancelFunc
	done   chan struct{}
	// listen and leave pass the running turn's channel in and out.
	listen chan chan<- event
}

// resync is the event that says "events may be missing".
const resync = "thole.resync"

// startFeed returns when the server has said that it is connected, so that no
// event of a turn started after it is missed.
func startFeed(ctx context.Context, srv *server) (*feed, error) {
	own, cancel := context.WithCancel(context.Background())
	f := &feed{srv: srv, cancel: cancel, done: make(chan struct{}), listen: make(chan chan<- event)}
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
		return nil, thole.Errorf(thole.CodeUnavailable, "opencode ended before it was ready: %s", srv.proc.Diagnosis())
	case <-ctx.Done():
		f.stop()
		return nil, context.Cause(ctx)
	}
}

func (f *feed) stop() {
	f.cancel()
	<-f.done
}

// to directs events to ch, nil to nobody. It returns when the former receiver
// gets no more.
func (f *feed) to(ch chan<- event) {
	select {
	case f.listen <- ch:
	case <-f.done:
	}
}

func (f *feed) loop(ctx context.Context, first chan error) {
	defer close(f.done)
	var sink chan<- event
	deliver := func(e event) bool {
		for {
			if sink == nil {
				select {
				case sink = <-f.listen:
					continue
				case <-ctx.Done():
					return false
				default:
					return true
				}
			}
			select {
			case sink <- e:
				return true
			case sink = <-f.listen:
			case <-ctx.Done():
				return false
			}
		}
	}
	live := false
	for attempt := 0; ctx.Err() == nil; attempt++ {
		body, err := f.srv.events(ctx)
		if err == nil {
			f.read(ctx, body, &sink, func(e event) bool {
				// Only from this word on does the server tell what happens.
				if e.Type == "server.connected" && live {
					e.Type = resync
				} else if e.Type == "server.connected" {
					live = true
					first <- nil
				}
				return deliver(e)
			})
			body.Close()
		} else if attempt == 0 {
			first <- err
		}
		if f.srv.dead() {
			return
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case sink = <-f.listen:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// read passes on one connection's events. A goroutine decodes, so that a change
// of listener never waits for the network.
func (f *feed) read(ctx context.Context, body io.ReadCloser, sink *chan<- event, deliver func(event) bool) {
	events := make(chan event)
	quit := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = decodeStream(body, func(e event) bool {
			select {
			case events <- e:
				return true
			case <-quit:
				return false
			}
		})
	}()
	defer func() {
		close(quit)
		body.Close()
		<-ended
	}()
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case e := <-events:
			quiet.Reset(silence)
			if e.Type == "server.heartbeat" {
				continue
			}
			if !deliver(e) {
				return
			}
		case *sink = <-f.listen:
		case <-quiet.C:
			return
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}
