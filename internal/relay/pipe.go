package relay

import (
	"context"
	"sync"

	"github.com/tholehq/thole/internal/jsonrpc"
)

// Pipe carries messages between two streams, unread, until either ends, and closes
// both. What one side sent before it ended reaches the other.
func Pipe(ctx context.Context, a, b jsonrpc.Stream) {
	var wg sync.WaitGroup
	carry := func(from, to jsonrpc.Stream) {
		defer func() { _ = to.Close("the other side has ended") }()
		for {
			msg, err := from.Read(ctx)
			if err != nil || to.Write(ctx, msg) != nil {
				return
			}
		}
	}
	stop := context.AfterFunc(ctx, func() {
		_ = a.Close("ended")
		_ = b.Close("ended")
	})
	defer stop()
	wg.Go(func() { carry(a, b) })
	wg.Go(func() { carry(b, a) })
	wg.Wait()
}
