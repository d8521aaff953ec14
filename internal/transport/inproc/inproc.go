// Package inproc is a message stream inside one process: two ends of a pipe, for
// embedding a server in its client's process and for tests. It carries bytes only, so
// what works here works on a wire. It keeps at most one message per direction:
// a reader that stops, stops its writer.
package inproc

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/tholehq/thole/internal/jsonrpc"
)

type end struct {
	in, out chan []byte
	closed  chan struct{} // this end
	peer    chan struct{} // the other end
	once    *sync.Once
}

// Pipe returns two connected streams. Closing one gives the other io.EOF after
// the message that is already under way.
func Pipe() (a, b jsonrpc.Stream) {
	ab, ba := make(chan []byte, 1), make(chan []byte, 1)
	ca, cb := make(chan struct{}), make(chan struct{})
	return &end{ba, ab, ca, cb, new(sync.Once)}, &end{ab, ba, cb, ca, new(sync.Once)}
}

func (e *end) Read(ctx context.Context) ([]byte, error) {
	select {
	case <-e.closed:
		return nil, io.ErrClosedPipe
	default:
	}
	select {
	case m := <-e.in:
		return m, nil
	case <-e.closed:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.peer:
	}
	select { // the peer may have written before it closed
	case m := <-e.in:
		return m, nil
	default:
		return nil, io.EOF
	}
}

func (e *end) Write(ctx context.Context, msg []byte) error {
	select {
	case <-e.closed:
		return io.ErrClosedPipe
	case <-e.peer:
		return io.ErrClosedPipe
	default:
	}
	select {
	case e.out <- bytes.Clone(msg):
		return nil
	case <-e.closed:
	case <-e.peer:
	case <-ctx.Done():
		return ctx.Err()
	}
	return io.ErrClosedPipe
}

func (e *end) Close(string) error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
