package relay

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/coder/websocket"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/protocol/relay"
)

const (
	maxStreams     = 128
	maxPending     = 32 // handshakes that the registry is asked about
	maxFailures    = 8  // handshakes of one socket; the last one closes it
	controlFrames  = 256
	queuedMessages = 128
	queuedBytes    = maxMessage // beyond one message
	// heldBytes bounds what all streams of a socket hold together: messages that wait and
	// those of which a part has come. 128 streams at their own bounds would be 16 GiB.
	heldBytes = 256 << 20
)

// Executor serves the streams that harnesses open to an environment.
type Executor struct {
	Registry *Registry
	Identity *noise.Identity
	// Harnesses are the fingerprints of the only keys that are accepted; empty:
	// every key that the registry vouches for. It is asked in either case.
	Harnesses []string
	// Serve serves one stream until it ends. The context ends with Run.
	Serve func(ctx context.Context, s jsonrpc.Stream)
	// OnReady is called whenever the executor can be reached.
	OnReady func(relay.Registration)
	Log     *slog.Logger
	Timers  Timers
	// Memory bounds the bytes that all streams together hold; default 256 MiB.
	Memory int64
}

// Run registers, keeps a socket at the rendezvous and serves until ctx ends. A first
// registration that fails is its error; whatever is lost later is tried again, also while
// another executor has the environment.
func (e *Executor) Run(ctx context.Context) error {
	t := e.Timers.withDefaults()
	log := e.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	reg, err := e.Registry.register(ctx, wireKey(e.Identity.Public()))
	if err != nil {
		return err
	}
	var serving sync.WaitGroup // of all sockets: a call that nothing ends keeps no socket from being dialed again
	defer serving.Wait()
	wait := backoff.Policy{Min: t.RetryMin, Max: t.RetryMax, Jitter: backoff.Half}.Begin()
	served, said := false, ""
	for ctx.Err() == nil {
		dctx, cancel := context.WithTimeout(ctx, t.Pong)
		c, err := dialSocket(dctx, reg.URL)
		cancel()
		if err == nil {
			wait.Reset()
			served = true
			err = e.socket(ctx, c, reg, t, log, &serving)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end that was asked for
		}
		log.Warn("rendezvous socket lost", "err", err)
		if backoff.Sleep(ctx, wait.Next()) != nil {
			return nil //nolint:nilerr // same
		}
		if status := refusedUpgrade(err); status >= 400 && status < 500 || thole.CodeOf(err) == thole.CodeInvalid {
			next, err := e.Registry.register(ctx, wireKey(e.Identity.Public()))
			switch {
			case err == nil:
				reg, said = next, ""
			case !served && thole.CodeOf(err) == thole.CodeBusy:
				return err
			case err.Error() != said: // once: it may stay so for days
				said = err.Error()
				log.Warn("cannot register; trying again", "err", err)
			}
		}
	}
	return nil
}

// socket serves one socket until it is lost. Its streams are ended then, and who serves
// them is among those that serving waits for.
func (e *Executor) socket(ctx context.Context, c *websocket.Conn, reg relay.Registration, t Timers, log *slog.Logger, serving *sync.WaitGroup) error {
	ctx, cancel := context.WithCancel(ctx)
	m := &mux{e: e, c: c, reg: reg, t: t, log: log, serving: serving, streams: map[string]*executorStream{}, pending: map[string]context.CancelFunc{}, control: make(chan []byte, controlFrames)}
	var wg sync.WaitGroup
	wg.Go(func() { keepAlive(ctx, c, t) })
	wg.Go(func() { m.writeControl(ctx) })
	stop := context.AfterFunc(ctx, func() { _ = c.CloseNow() })
	if e.OnReady != nil {
		e.OnReady(reg)
	}
	err := m.read(ctx)
	cancel()
	stop()
	_ = c.CloseNow()
	m.end()
	wg.Wait()
	return err
}

// mux is one socket with the streams on it.
type mux struct {
	e       *Executor
	c       *websocket.Conn
	reg     relay.Registration
	t       Timers
	log     *slog.Logger
	control chan []byte // frames that are not records, from anybody to writeControl
	serving *sync.WaitGroup

	mu       sync.Mutex // guards the rest
	streams  map[string]*executorStream
	pending  map[string]context.CancelFunc
	failures int
	ended    bool

	held atomic.Int64 // bytes, of all streams
}

// read takes frames. It waits for nobody but, for a while, a stream that is full.
func (m *mux) read(ctx context.Context) error {
	for {
		typ, raw, err := m.c.Read(ctx)
		if err != nil {
			return err
		}
		if typ != websocket.MessageBinary {
			continue
		}
		f, err := relay.Parse(raw)
		if err != nil {
			m.log.Debug("frame dropped", "err", err)
			continue
		}
		switch f.Kind {
		case relay.KindHandshake:
			m.handshake(ctx, f)
		case relay.KindData:
			m.mu.Lock()
			s := m.streams[f.StreamID]
			m.mu.Unlock()
			if s == nil {
				m.reset(f.StreamID)
				continue
			}
			if err := s.take(f); err != nil {
				m.log.Debug("stream reset", "err", err)
				s.end(true)
			}
			m.endLargest(cmp.Or(m.e.Memory, heldBytes))
		case relay.KindReset:
			m.mu.Lock()
			s, pending := m.streams[f.StreamID], m.pending[f.StreamID]
			m.mu.Unlock()
			if s != nil {
				s.end(false)
			}
			if pending != nil {
				pending()
			}
		}
	}
}

// handshake answers the first message of a stream, once the registry has said yes.
func (m *mux) handshake(ctx context.Context, f *relay.Frame) {
	m.mu.Lock()
	pending := m.pending[f.StreamID]
	twice := m.streams[f.StreamID] != nil || pending != nil
	full := len(m.streams)+len(m.pending) >= maxStreams || len(m.pending) >= maxPending
	m.mu.Unlock()
	if pending != nil {
		pending() // two for one stream: neither is to be believed
	}
	if twice {
		m.fail(f.StreamID)
		return
	}
	if full { // no failure: after a lost socket a hundred harnesses may come back at once
		m.reset(f.StreamID)
		return
	}
	p := noise.Prologue{Environment: m.reg.EnvironmentID, Registration: m.reg.ExecutorRegistrationID, Stream: f.StreamID}
	hs, err := noise.NewResponder(m.e.Identity, p, f.Payload)
	if err != nil || len(hs.Payload) > relay.MaxAuthorization || !utf8.Valid(hs.Payload) {
		m.fail(f.StreamID)
		return
	}
	if who := hs.Peer.Fingerprint(); len(m.e.Harnesses) > 0 && !slices.Contains(m.e.Harnesses, who) {
		m.log.Warn("harness refused: its key is not among those allowed", "from", who)
		m.fail(f.StreamID)
		return
	}
	id := f.StreamID
	vctx, cancel := context.WithTimeout(ctx, m.t.Validate)
	m.mu.Lock()
	m.pending[id] = cancel
	m.mu.Unlock()
	m.serving.Go(func() {
		valid, err := m.e.Registry.validate(vctx, id, relay.ValidateRequest{ExecutorRegistrationID: m.reg.ExecutorRegistrationID, HarnessPublicKey: wireKey(hs.Peer), HarnessKeyAuthorization: string(hs.Payload)})
		gone := vctx.Err() != nil
		cancel()
		if !valid || gone {
			m.mu.Lock()
			delete(m.pending, id)
			m.mu.Unlock()
			m.log.Warn("harness refused", "from", hs.Peer.Fingerprint(), "err", err)
			m.fail(id)
			return
		}
		m.accept(ctx, id, hs)
	})
}

// endLargest resets streams until the others are within the limit.
func (m *mux) endLargest(limit int64) {
	if m.held.Load() <= limit {
		return
	}
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.streams))
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b *executorStream) int { return cmp.Compare(b.size(), a.size()) })
	for _, s := range all {
		if m.held.Load() <= limit {
			return
		}
		m.log.Warn("stream reset: too much waits for its server")
		s.end(true)
		s.release()
	}
}

// accept makes a stream of a handshake that is no longer pending from then on: in between
// another one for the same stream could take its place, and the first would never end.
func (m *mux) accept(ctx context.Context, id string, hs *noise.Responder) {
	answer, out, in, err := hs.Accept()
	s := &executorStream{mux: m, id: id, out: recordWriter{stream: id, cipher: out}, in: recordReader{cipher: in}, queue: make(chan []byte, queuedMessages), gone: make(chan struct{})}
	m.mu.Lock()
	delete(m.pending, id)
	ended := m.ended
	twice := m.streams[id] != nil
	if !ended && !twice && err == nil {
		m.streams[id] = s
	}
	m.mu.Unlock()
	if twice || err != nil {
		m.fail(id)
		return
	}
	if ended || send(m.c, relay.Handshake(id, answer).Append(nil), m.t) != nil {
		s.end(false)
		return
	}
	m.log.Info("harness connected", "from", hs.Peer.Fingerprint())
	m.e.Serve(ctx, s)
	s.end(true)
	s.release()
}

// fail counts a handshake that failed; too many end the socket, which costs an
// attacker a connection and a registry a look.
func (m *mux) fail(id string) {
	m.reset(id)
	m.mu.Lock()
	m.failures++
	over := m.failures >= maxFailures
	m.mu.Unlock()
	if over {
		m.log.Warn("too many handshakes failed; closing the socket")
		_ = m.c.Close(websocket.StatusPolicyViolation, "")
	}
}

// reset ends a stream for the peer. A peer that takes no frames while
// hundreds of streams end loses the socket.
func (m *mux) reset(id string) {
	select {
	case m.control <- relay.Reset(id, relay.ReasonProtocol).Append(nil):
	default:
		_ = m.c.CloseNow()
	}
}

func (m *mux) writeControl(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case frame := <-m.control:
			if send(m.c, frame, m.t) != nil {
				_ = m.c.CloseNow()
				return
			}
		}
	}
}

func (m *mux) end() {
	m.mu.Lock()
	m.ended = true
	all := make([]*executorStream, 0, len(m.streams))
	for _, s := range m.streams {
		all = append(all, s)
	}
	m.mu.Unlock()
	for _, s := range all {
		s.end(false)
	}
}
