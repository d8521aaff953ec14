package executorclient

import (
	"context"

	"github.com/tholehq/thole/internal/executord/wire"
)

// maxBackground bounds what an agent may be said to have left running.
const maxBackground = 256

// Background asks what a thread's agent left running, and may end it. An executord of an
// earlier version has no answer: CodeNotFound.
func (c *Client) Background(ctx context.Context, req wire.BackgroundRequest) (wire.Background, error) {
	b, err := call[wire.Background](ctx, c, "POST", "/background", req)
	b.Commands = b.Commands[:min(len(b.Commands), maxBackground)]
	return b, err
}
