package session

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrEnded is the cause of a context whose login or token ended.
var ErrEnded = errors.New("the login or token of this request has ended")

// holders are the requests in progress, by the login or token they came with.
type holders struct {
	mu sync.Mutex
	by map[string][]*context.CancelCauseFunc
}

// Hold returns a context that ends, with ErrEnded, when the login or token does.
// It covers ends that this process caused; streams also ask again now and then.
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

func (h *holders) end(ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		for _, end := range h.by[id] {
			(*end)(ErrEnded)
		}
	}
}
