package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/thread"
)

// loop sends until the client, the session or the server ends. Under load it
// collects what came since the last write: readers cost per write, not per event.
func (f *follower) loop() {
	f.alive = time.NewTimer(f.cfg.KeepAlive)
	defer f.alive.Stop()
	if f.flush() != nil {
		return
	}
	for {
		src, batch, woke := f.wait()
		switch woke {
		case wokeGone:
			if errors.Is(context.Cause(f.r.Context()), session.ErrEnded) {
				f.end("logout")
			}
			return
		case wokeStop:
			f.end("shutdown")
			return
		case wokeAlive:
			if f.check() {
				return
			}
			continue
		}
		f.pace()
		if f.take(src, batch, woke) || f.drain() || f.flush() != nil {
			return
		}
	}
}

// check keeps the line open and looks whether the reader is still logged in.
func (f *follower) check() bool {
	if !f.stillIn(f.r) {
		f.end("logout")
		return true
	}
	f.comment("alive")
	f.alive.Reset(f.cfg.KeepAlive)
	return f.flush() != nil
}

type wake int

const (
	wokeGone wake = iota
	wokeStop
	wokeAlive
	wokeJobs
	wokeWatch
	wokeSource
)

// wait blocks until something happens. A session's own stream, of which there
// may be thousands, takes the plain select.
func (f *follower) wait() (*followed, *thread.Batch, wake) {
	if f.watch == nil {
		src := f.sources[0]
		select {
		case batch := <-src.ch: // nil when closed
			return src, batch, wokeSource
		case <-f.alive.C:
			return nil, nil, wokeAlive
		case <-f.r.Context().Done():
			return nil, nil, wokeGone
		case <-f.stopping:
			return nil, nil, wokeStop
		}
	}
	recv := func(ch any) reflect.SelectCase {
		return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ch)}
	}
	cases := []reflect.SelectCase{
		wokeGone: recv(f.r.Context().Done()), wokeStop: recv(f.stopping), wokeAlive: recv(f.alive.C), wokeJobs: recv(f.changed), wokeWatch: recv(f.watch.Events),
	}
	for _, src := range f.sources {
		cases = append(cases, recv(src.ch))
	}
	i, v, ok := reflect.Select(cases)
	var batch *thread.Batch
	if ok && i >= int(wokeWatch) {
		batch = v.Interface().(*thread.Batch)
	}
	if i >= int(wokeSource) {
		return f.sources[i-int(wokeSource)], batch, wokeSource
	}
	return nil, batch, wake(i)
}

// take writes one delivery; true ends the stream.
func (f *follower) take(src *followed, batch *thread.Batch, woke wake) bool {
	switch woke {
	case wokeJobs:
		b, _ := json.Marshal(jobsEvent(f.cfg.Now())) // plain data always encodes
		f.data(b)
	case wokeWatch:
		if batch == nil {
			return f.over(f.watch)
		}
		f.news(batch)
	case wokeSource:
		return f.more(src, batch)
	}
	return false
}

// more writes a session's batch and what else it has.
func (f *follower) more(src *followed, batch *thread.Batch) bool {
	var fresh []*thread.Batch
	for {
		if batch == nil {
			f.add(src, fresh)
			if f.over(src.sub) {
				return true
			}
			src.ch = nil // its place in the cursor stays
			return false
		}
		fresh = append(fresh, batch)
		select {
		case batch = <-src.ch:
		default:
			f.add(src, fresh)
			return false
		}
	}
}

// drain writes what every session has by now.
func (f *follower) drain() bool {
	for _, src := range f.sources {
		select {
		case batch := <-src.ch:
			if f.more(src, batch) {
				return true
			}
		default:
		}
	}
	if f.watch == nil {
		return false
	}
	select {
	case <-f.changed:
		f.take(nil, nil, wokeJobs)
	default:
	}
	for {
		select {
		case batch := <-f.watch.Events:
			if batch == nil {
				return f.over(f.watch)
			}
			f.news(batch)
		default:
			return false
		}
	}
}
