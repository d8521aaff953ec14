//go:build linux

package execserver

import (
	"context"
	"math"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/protocol/exec"
)

// Server holds the sessions. It is safe for concurrent use.
type Server struct {
	cfg     Config
	info    *exec.EnvironmentInfo
	wrapper *sandbox.Wrapper

	mu       sync.Mutex // guards sessions and closed
	sessions map[string]*session
	closed   bool
	wg       sync.WaitGroup // connections and processes
}

// New makes a Server. Descriptors that this process inherited and would pass on
// are marked to be closed, so that children get none but their own.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	return &Server{
		cfg: cfg, info: describe(cfg), wrapper: sandbox.NewWrapper(cfg.Helper),
		sessions: map[string]*session{},
	}
}

// Serve serves one connection until it ends or ctx does. Its session outlives it
// by Config.DetachTTL. It returns nil when the peer closed in an orderly way.
func (s *Server) Serve(ctx context.Context, stream jsonrpc.Stream) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return stream.Close("server is closed")
	}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	return newConn(s, stream).run(ctx)
}

// Close ends every connection, kills every process of every session and waits
// until they are reaped.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.sessions
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	for _, ses := range all {
		if c := ses.conn.Load(); c != nil {
			c.rpc.Close("server is closed") // also frees processes that wait for a slow client
		}
		ses.end()
	}
	for _, ses := range all {
		ses.procs.Wait()
	}
}

// Running counts the processes that have not exited.
func (s *Server) Running() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ses := range s.sessions {
		n += ses.running()
	}
	return n
}

// attach opens a new session, or resumes one, for a connection.
func (s *Server) attach(resume *string, brief bool, c *conn) (*session, *jsonrpc.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, jsonrpc.Errorf(exec.CodeInternal, "server is closed")
	}
	if resume == nil {
		ses := newSession(s, uuid.NewString())
		if brief {
			ses.ttl = 0
		}
		ses.attach(c)
		s.sessions[ses.id] = ses
		return ses, nil
	}
	ses := s.sessions[*resume]
	switch {
	case ses == nil:
		return nil, jsonrpc.Errorf(exec.CodeInvalidRequest, "unknown session id %s", *resume)
	case !ses.attach(c):
		return nil, jsonrpc.Errorf(exec.CodeSessionAttached, "session %s is already attached to another connection", *resume)
	}
	return ses, nil
}

// expire ends a session that stayed without connection.
func (s *Server) expire(ses *session) {
	s.mu.Lock()
	gone := ses.detachedFor(ses.ttl)
	if gone {
		delete(s.sessions, ses.id)
	}
	s.mu.Unlock()
	if gone {
		ses.end()
	}
}
