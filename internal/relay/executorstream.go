package relay

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tholehq/thole/protocol/relay"
)

// executorStream is one stream on the executor's socket.
type executorStream struct {
	mux *mux
	id  string
	out recordWriter // Write's
	in  recordReader // the socket's reader's

	queue  chan []byte // from the socket's reader to Read
	queued atomic.Int64
	gone   chan struct{} // closed by end
	once   sync.Once

	mu       sync.Mutex // guards the rest
	held     int64      // bytes of it in mux.held
	released bool
}

// hold counts bytes that the stream has taken or, negative, given up.
func (s *executorStream) hold(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.released {
		s.held += n
		s.mux.held.Add(n)
	}
}

func (s *executorStream) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// release forgets what the ended stream held: nobody reads it.
func (s *executorStream) release() {
	s.mu.Lock()
	s.mux.held.Add(-s.held)
	s.held, s.released = 0, true
	s.mu.Unlock()
	for {
		select {
		case <-s.queue:
		default:
			return
		}
	}
}

var errFull = errors.New("relay: the stream does not take what comes for it")

// take is called by the socket's reader. A stream that stays full is ended, since
// the others on the socket wait meanwhile.
func (s *executorStream) take(f *relay.Frame) error {
	var err error
	before := s.in.size()
	defer func() { s.hold(s.in.size() - before) }()
	broken := s.in.read(f.Seq, f.Payload, func(msg []byte) {
		if err == nil {
			err = s.enqueue(msg)
		}
	})
	return errors.Join(broken, err)
}

func (s *executorStream) enqueue(msg []byte) error {
	s.hold(int64(len(msg)))
	if n := s.queued.Add(int64(len(msg))); n > queuedBytes && n > int64(len(msg)) {
		return errFull
	}
	select {
	case s.queue <- msg:
		return nil
	default:
	}
	timer := time.NewTimer(s.mux.t.StreamFull)
	defer timer.Stop()
	select {
	case s.queue <- msg:
		return nil
	case <-s.gone:
		return nil
	case <-timer.C:
		return errFull
	}
}

// Read implements jsonrpc.Stream. What came before a reset is read first.
func (s *executorStream) Read(ctx context.Context) ([]byte, error) {
	select {
	case msg := <-s.queue:
		s.taken(len(msg))
		return msg, nil
	default:
	}
	select {
	case msg := <-s.queue:
		s.taken(len(msg))
		return msg, nil
	case <-s.gone:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *executorStream) taken(n int) {
	s.queued.Add(-int64(n))
	s.hold(-int64(n))
}

// Write implements jsonrpc.Stream. It waits for the socket, which all streams share.
func (s *executorStream) Write(_ context.Context, msg []byte) error {
	return s.out.write(msg, func(frame []byte) error {
		select {
		case <-s.gone:
			return io.ErrClosedPipe
		default:
			return send(s.mux.c, frame, s.mux.t)
		}
	})
}

// Close implements jsonrpc.Stream.
func (s *executorStream) Close(string) error {
	s.end(true)
	return nil
}

// end forgets the stream and, unless the peer knows already, resets it.
func (s *executorStream) end(tell bool) {
	s.once.Do(func() {
		s.mux.mu.Lock()
		if s.mux.streams[s.id] == s {
			delete(s.mux.streams, s.id)
		}
		ended := s.mux.ended
		s.mux.mu.Unlock()
		close(s.gone)
		if tell && !ended {
			s.mux.reset(s.id)
		}
	})
}
