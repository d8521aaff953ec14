package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// ErrEnded is the cause of a context whose login or token ended.
var ErrEnded = errors.New("the login or token of this request has ended")

// holders are the requests in progress, by the login or token they came with.
type holders struct {
	mu sync.Mutex
	by map[string][]*context.CancelCauseFunc
}

// Hold returns a context that ends, with ErrEnded, when the login or token does.
// It covers ends that this process caused, and those that EndGone finds; streams also ask
// again now and then.
func (m *Manager) Hold(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	h := &m.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = map[string][]*context.CancelCauseFunc{}
	}
	h.by[id] = append(h.by[id], &end)
	return ctx, func() {
		end(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		if left := slices.DeleteFunc(h.by[id], func(e *context.CancelCauseFunc) bool { return e == &end }); len(left) > 0 {
			h.by[id] = left
		} else {
			delete(h.by, id)
		}
	}
}

// EndGone ends the requests in progress whose login, token or share link ended elsewhere:
// gone returns which of the ids it is given are not there any more.
func (m *Manager) EndGone(ctx context.Context, gone func(ctx context.Context, ids []string, now time.Time) ([]string, error)) error {
	m.held.mu.Lock()
	ids := slices.Collect(maps.Keys(m.held.by))
	m.held.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	ended, err := gone(ctx, ids, m.now())
	m.held.end(ended)
	return err
}

func (h *holders) end(ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		for _, end := range h.by[id] {
			(*end)(ErrEnded)
		}
	}
}
