package cli

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

// pacedEvents is how many pieces of output may wait for their consumer. Together they
// stay below what makes a client fall back on reading what the server still has.
const pacedEvents = 16

// paced is a stream that is not read while its consumer has enough to do: the server
// then waits with the process, and no output is lost.
type paced struct {
	jsonrpc.Stream
	p *pacer
}

// pacer counts the pieces of output that were read and not consumed.
type pacer struct {
	waiting atomic.Int64
	less    chan struct{} // cap 1
}

func (p *pacer) consumed() {
	p.waiting.Add(-1)
	select {
	case p.less <- struct{}{}:
	default:
	}
}

// dial is a dial of paced streams. What waited on the stream before is repaired by a
// read and not counted.
func (p *pacer) dial(dial func(context.Context) (jsonrpc.Stream, error)) func(context.Context) (jsonrpc.Stream, error) {
	return func(ctx context.Context) (jsonrpc.Stream, error) {
		s, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		p.waiting.Store(0)
		return paced{s, p}, nil
	}
}

var outputMethod = []byte(`"` + exec.NotifyOutput + `"`)

// Read implements jsonrpc.Stream.
func (s paced) Read(ctx context.Context) ([]byte, error) {
	for s.p.waiting.Load() >= pacedEvents {
		select {
		case <-s.p.less:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	msg, err := s.Stream.Read(ctx)
	if err == nil && bytes.Contains(msg[:min(len(msg), 256)], outputMethod) {
		s.p.waiting.Add(1)
	}
	return msg, err
}
