package shell

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/executord/terminal"
)

const (
	// closeGrace is how long a peer may take to answer a goodbye that is not the
	// shell's end.
	closeGrace = time.Second
)

// session is one connection with its shell. Three goroutines work for it: input
// reads the client, output the terminal, and watch asks whether the client lives.
// Whichever finds a reason to end names it; run then ends all of them.
//
// Messages are read and written without a context: the library would answer its end
// by dropping the connection without a goodbye.
type session struct {
	cfg   Config
	ws    *websocket.Conn
	net   net.Conn
	shell *shell

	once   sync.Once
	over   chan struct{} // closed when code and reason are set
	code   websocket.StatusCode
	reason string

	mu     sync.Mutex    // guards paused
	paused chan struct{} // closed by resume; nil while output flows

	began time.Time
	// When the client last showed life and when it last took output, since began.
	alive, took atomic.Int64
	stalled     atomic.Bool // input waits for the program, so nobody hears the client
	writing     atomic.Bool // output is on its way to the client
}

// run serves a connection until either side, or base, ends it, and returns when
// nothing of its shell is left.
func run(base context.Context, cfg Config, ws *websocket.Conn, conn net.Conn) {
	s := &session{cfg: cfg, ws: ws, net: conn, over: make(chan struct{}), began: time.Now()}
	defer s.goodbye()
	size, err := s.hello(base)
	if err != nil {
		s.end(websocket.StatusPolicyViolation, err.Error())
		return
	}
	var in *box.Box
	if cfg.Box != nil {
		if in, err = cfg.Box(); err != nil {
			s.end(websocket.StatusInternalError, err.Error())
			return
		}
	}
	if s.shell, err = startShell(in, cfg.Dir, cfg.Env, size); err != nil {
		s.end(websocket.StatusInternalError, err.Error())
		return
	}
	stop := context.AfterFunc(base, func() { s.end(websocket.StatusGoingAway, "the executor stops") })
	defer stop()
	var parts, ending sync.WaitGroup
	parts.Go(s.input)
	parts.Go(s.output)
	parts.Go(s.watch)
	<-s.over
	ending.Go(s.shell.end)
	s.goodbye()
	ending.Wait()
	parts.Wait()
}

// hello waits for the client's first message.
func (s *session) hello(base context.Context) (terminal.Size, error) {
	ctx, cancel := context.WithTimeout(base, s.cfg.Patience)
	defer cancel()
	_, msg, err := s.ws.Read(ctx)
	if err != nil {
		return terminal.Size{}, err
	}
	c, err := terminal.Decode(msg)
	if err == nil && c.Kind != terminal.CmdHello {
		err = fmt.Errorf("the first message must be a JSON object with columns and rows")
	}
	return c.Size, err
}

// end names the reason to end; the first one counts.
func (s *session) end(code websocket.StatusCode, reason string) {
	s.once.Do(func() {
		s.code, s.reason = code, reason
		close(s.over)
	})
}

// goodbye sends the client the reason, and hangs up. It may be repeated. Who has a shell's
// last output to read before it comes to the goodbye has the time the library gives.
func (s *session) goodbye() {
	if !strings.HasPrefix(s.reason, terminal.ExitReason) {
		t := time.AfterFunc(closeGrace, func() { s.net.Close() })
		defer t.Stop()
	}
	_ = s.ws.Close(s.code, terminal.Cut(s.reason))
}

// input takes what the client says. A program that reads nothing stops it: the
// client's socket fills, nothing is kept here.
func (s *session) input() {
	for {
		_, msg, err := s.ws.Read(context.Background())
		if err != nil {
			s.end(websocket.StatusNormalClosure, "the client left")
			return
		}
		s.lives()
		c, err := terminal.Decode(msg)
		if err != nil {
			s.end(websocket.StatusPolicyViolation, err.Error())
			return
		}
		switch c.Kind {
		case terminal.CmdInput:
			s.stalled.Store(true)
			_, _ = s.shell.Write(c.Data) // a shell that is gone is reported by output
			s.lives()
			s.stalled.Store(false)
		case terminal.CmdResize:
			_ = s.shell.resize(c.Size)
		case terminal.CmdPause, terminal.CmdResume:
			s.pause(c.Kind == terminal.CmdPause)
		}
	}
}

func (s *session) pause(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case on && s.paused == nil:
		s.paused = make(chan struct{})
	case !on && s.paused != nil:
		close(s.paused)
		s.paused = nil
	}
}

// flows waits while the client wants no output, and says whether it goes on.
func (s *session) flows() bool {
	s.mu.Lock()
	paused := s.paused
	s.mu.Unlock()
	if paused == nil {
		return true
	}
	select {
	case <-paused:
		return true
	case <-s.over:
		return false
	}
}

// output passes on what the program says, one piece after the other, and at its end
// how it ended.
func (s *session) output() {
	if !s.send(append([]byte{terminal.OutTitle}, s.shell.name+" in "+s.cfg.Dir...)) || !s.send([]byte{terminal.OutPreferences, '{', '}'}) {
		return
	}
	buf := make([]byte, 1+terminal.Chunk)
	buf[0] = terminal.OutOutput
	for {
		n, err := s.shell.Read(buf[1:])
		if n > 0 && (!s.flows() || !s.send(buf[:1+n])) {
			return
		}
		if err != nil {
			break
		}
	}
	s.end(websocket.StatusNormalClosure, fmt.Sprint(terminal.ExitReason, s.shell.exitCode()))
}

func (s *session) send(msg []byte) bool {
	s.writing.Store(true)
	err := s.ws.Write(context.Background(), websocket.MessageBinary, msg)
	s.lives()
	s.took.Store(s.alive.Load())
	s.writing.Store(false)
	if err != nil {
		s.end(websocket.StatusNormalClosure, "the client left")
	}
	return err == nil
}

// watch ends the session of a client that shows no life: it neither takes output,
// nor says anything, nor answers a ping. Output under way is not pinged into: a ping
// that does not get through at once drops the connection, and a slow client lives.
func (s *session) watch() {
	tick := time.NewTicker(s.cfg.PingEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-tick.C:
		}
		if !s.writing.Load() && s.since(&s.took) >= s.cfg.PingEvery {
			ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Patience)
			if s.ws.Ping(ctx) == nil {
				s.lives()
			}
			cancel()
		}
		if !s.stalled.Load() && s.since(&s.alive) > s.cfg.Patience {
			s.end(websocket.StatusPolicyViolation, fmt.Sprintf("no sign of life for %s", s.cfg.Patience))
			return
		}
	}
}

func (s *session) lives() { s.alive.Store(int64(time.Since(s.began))) }

func (s *session) since(t *atomic.Int64) time.Duration {
	return time.Since(s.began) - time.Duration(t.Load())
}
