package opencode

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// silence is how long the event stream may be quiet: the server sends a heartbeat
// every ten seconds.
const silence = 35 * time.Second

// deltaType is the type of events that are deltas.
const deltaType = "message.part.delta"

// decodeStream reads server-sent events and hands those of one read together to
// emit, until the stream or emit ends it. Only data lines are used by the server;
// what cannot be read is skipped.
func decodeStream(r io.Reader, emit func([]serverEvent) bool) error {
	lines := process.NewLines(r)
	var batch []serverEvent
	var last delta
	for {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if last.glance(data) {
				batch = append(batch, serverEvent{Type: deltaType, delta: last})
			} else if e, ok := decodeEvent(data); ok {
				batch = append(batch, e)
			}
		}
		if len(batch) == 0 || lines.Ready() {
			continue
		}
		if !emit(batch) {
			return nil
		}
		batch = nil
	}
}

func decodeEvent(data []byte) (e serverEvent, ok bool) {
	if json.Unmarshal(data, &e) != nil || e.Type == "" {
		return e, false
	}
	e.Properties = bytes.Clone(e.Properties)
	return e, true
}

// glance reads an event that is a delta. Most of one is as the one before, which
// d holds, and makes no garbage.
func (d *delta) glance(data []byte) bool {
	if !bytes.Contains(data[:min(len(data), 96)], []byte(deltaType)) {
		return false
	}
	is, members := false, 0
	var text []byte
	plain := provider.Glance(data, func(in, key, value []byte) {
		switch string(in) {
		case "":
			is = is || string(key) == "type" && string(bytes.Trim(value, `"`)) == deltaType
		case "properties":
			switch string(key) {
			case "sessionID":
				keep(&d.session, value)
				members |= 1
			case "partID":
				keep(&d.part, value)
				members |= 2
			case "field":
				keep(&d.field, value)
				members |= 4
			case "delta":
				text = value
				members |= 8
			}
		}
	})
	if !plain || !is || members != 15 {
		return false
	}
	d.text = provider.Unquote(text)
	return true
}

// keep makes s the value, unless it is already.
func keep(s *string, value []byte) {
	if string(bytes.Trim(value, `"`)) != *s {
		*s = provider.Unquote(value)
	}
}

// feed keeps the event stream of one server open and tells events to the run that
// listens. After a reconnect the run is told to read everything again. It ends
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

// to directs events to a turn. Between turns they are dropped.
func (f *feed) to(r *run) { f.run.Store(r) }

// deliver tells events to the turn that listens, as fast as it takes them.
func (f *feed) deliver(ctx context.Context, batch []serverEvent) bool {
	if r := f.run.Load(); r != nil && len(batch) > 0 {
		_ = r.lead.Do(ctx, func() error { r.hear(batch); return nil }) // a turn that is over hears nothing
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
				// Only from this word on does the server tell what happens.
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
		if f.srv.dead() {
			return
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// read passes on one connection's events, each of which see may change. It gives
// the connection up when it is silent.
func (f *feed) read(ctx context.Context, body io.ReadCloser, see func(*serverEvent)) {
	defer body.Close()
	quiet := time.AfterFunc(silence, func() { body.Close() })
	defer quiet.Stop()
	_ = decodeStream(body, func(batch []serverEvent) bool {
		quiet.Stop() // a turn that is slow to listen is not the server's silence
		defer quiet.Reset(silence)
		for i := range batch {
			see(&batch[i])
		}
		return f.deliver(ctx, slices.DeleteFunc(batch, func(e serverEvent) bool { return e.Type == "server.heartbeat" }))
	})
}
