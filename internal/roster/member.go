package roster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Member is this process as a server. It is a service.Part.
type Member struct {
	Store Store
	Self  Server
	// Asking is called before each heartbeat, and what it returns after that was recorded.
	Asking func() (recorded func())
	// Replaced is called once if another process took the store over.
	Replaced func()
	Log      *slog.Logger

	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex // guards last
	last time.Time  // when the last recorded heartbeat was asked for
}

// Start implements service.Part. The server has joined before.
func (m *Member) Start(ctx context.Context) error {
	ctx, m.stop = context.WithCancel(ctx)
	m.done = make(chan struct{})
	if m.Asking != nil { // it has joined just now
		m.Asking()()
	}
	m.beaten(time.Now())
	go func() {
		defer close(m.done)
		m.beat(ctx)
	}()
	return nil
}

func (m *Member) beat(ctx context.Context) {
	ticker := time.NewTicker(BeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked, recorded := time.Now(), func() {}
		if m.Asking != nil {
			recorded = m.Asking()
		}
		switch err := m.Store.Beat(ctx, m.Self.ID, m.Self.Run); {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrReplaced):
			m.Log.Error("this server lost its place and ends", "err", err)
			m.Replaced()
			return
		case err != nil:
			m.Log.Warn("renew the heartbeat", "err", err)
		default:
			recorded()
			m.beaten(asked)
		}
	}
}

func (m *Member) beaten(asked time.Time) {
	m.mu.Lock()
	m.last = asked
	m.mu.Unlock()
}

// Current reports whether the others still count this server as alive, by its own clock.
func (m *Member) Current() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.last) < DeadAfter
}

// Drain records that this server takes nothing new.
func (m *Member) Drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, BeatEvery)
	defer cancel()
	return m.Store.Drain(ctx, m.Self.ID, m.Self.Run)
}

// Stop implements service.Part: the server leaves, so that others need not wait.
func (m *Member) Stop(ctx context.Context) error {
	if m.stop == nil {
		return nil
	}
	m.stop()
	<-m.done
	ctx, cancel := context.WithTimeout(ctx, BeatEvery)
	defer cancel()
	return m.Store.Leave(ctx, m.Self.ID, m.Self.Run)
}

// Alone runs work on one server at a time: while this one has the duty of that name. Work
// must end soon after its context does.
func (m *Member) Alone(ctx context.Context, duty string, work func(context.Context)) {
	ticker := time.NewTicker(BeatEvery)
	defer ticker.Stop()
	holder := m.Self.ID + " " + m.Self.Run
	var leave func() // while the work goes on
	var held time.Time
	defer func() {
		if leave != nil {
			leave()
		}
		if !held.IsZero() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), BeatEvery)
			defer cancel()
			if err := m.Store.Drop(ctx, duty, holder); err != nil {
				m.Log.Warn("give a duty back", "duty", duty, "err", err)
			}
		}
	}()
	for ctx.Err() == nil {
		asked := time.Now()
		ours, err := m.Store.Take(ctx, duty, holder, DeadAfter)
		if err != nil && ctx.Err() == nil {
			m.Log.Warn("take a duty", "duty", duty, "err", err)
		}
		if ours {
			held = asked
		}
		switch {
		case ours && leave == nil:
			doing, end := context.WithCancel(ctx)
			over := make(chan struct{})
			leave = func() { end(); <-over; leave = nil }
			go func() {
				defer close(over)
				work(doing)
			}()
		case leave == nil:
		case err == nil && !ours, time.Since(held) > DeadAfter-BeatEvery: // another may have it
			leave()
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
