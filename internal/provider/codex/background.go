package codex

import (
	"context"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/protocol/app"
)

// maxBegun bounds the commands whose items are remembered; codex itself keeps fewer
// running.
const maxBegun = 1024

// commands remembers which item a command of codex became.
type commands struct {
	mu    sync.Mutex
	items map[string]thole.ItemID
	order []string
}

func (c *commands) begun(native string, item thole.ItemID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items == nil {
		c.items = map[string]thole.ItemID{}
	}
	if _, again := c.items[native]; !again {
		c.order = append(c.order, native)
	}
	if c.items[native] = item; len(c.order) > maxBegun {
		delete(c.items, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *commands) item(native string) thole.ItemID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.items[native]
}

// Background implements provider.Background: codex knows what it left running.
func (s *session) Background(ctx context.Context) ([]provider.BackgroundCommand, error) {
	l, err := s.Present()
	if err != nil {
		return nil, nil //nolint:nilerr // nothing of it runs either
	}
	var list app.BackgroundTerminalsResult
	if err := l.client.Call(ctx, "thread/backgroundTerminals/list", app.BackgroundTerminalsParams{ThreadID: s.NativeID()}, &list); err != nil {
		return nil, err
	}
	out := make([]provider.BackgroundCommand, 0, len(list.Data))
	for _, t := range list.Data {
		out = append(out, provider.BackgroundCommand{ID: t.ProcessID, Item: l.commands.item(t.ItemID), Line: t.Command, Dir: t.Cwd})
	}
	return out, nil
}

// EndBackground implements provider.Background.
func (s *session) EndBackground(ctx context.Context, id string) (bool, error) {
	l, err := s.Present()
	if err != nil {
		return false, nil //nolint:nilerr // nothing of it runs either
	}
	if id == "" {
		return true, l.client.Call(ctx, "thread/backgroundTerminals/clean", app.ThreadParams{ThreadID: s.NativeID()}, nil)
	}
	var out app.BackgroundTerminalEnded
	err = l.client.Call(ctx, "thread/backgroundTerminals/terminate", app.BackgroundTerminalParams{ThreadID: s.NativeID(), ProcessID: id}, &out)
	return out.Terminated, err
}
