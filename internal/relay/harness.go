package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/protocol/relay"
)

// connectTries is how often a harness asks for a bundle before it gives up.
const connectTries = 5

// Dialer opens streams to the executor of an environment. It is safe for concurrent
// use.
type Dialer struct {
	Registry *Registry
	Identity *noise.Identity
	// Executor is the fingerprint of the only key that is accepted; empty: whatever
	// key the registry names.
	Executor string
	Timers   Timers
}

// Dial opens a stream. The context bounds the opening only.
func (d *Dialer) Dial(ctx context.Context) (jsonrpc.Stream, error) {
	t := d.Timers.withDefaults()
	for refreshed := false; ; refreshed = true {
		b, err := d.bundle(ctx, t)
		if err != nil {
			return nil, err
		}
		s, err := d.open(ctx, b, t)
		if err != nil && refusedUpgrade(err) == http.StatusUnauthorized && !refreshed {
			continue
		}
		return s, err
	}
}

// bundle asks the registry until it answers, with pauses.
func (d *Dialer) bundle(ctx context.Context, t Timers) (relay.Bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, t.ConnectAll)
	defer cancel()
	wait := backoff.Policy{Min: t.ConnectRetry, Max: 10 * t.ConnectRetry, Jitter: backoff.Half}.Begin()
	for try := 1; ; try++ {
		one, stop := context.WithTimeout(ctx, t.Connect)
		b, err := d.Registry.connect(one, wireKey(d.Identity.Public()))
		stop()
		var refused *thole.Error
		if err == nil || try == connectTries || errors.As(err, &refused) && refused.Code != thole.CodeUnavailable {
			return b, err
		}
		if backoff.Sleep(ctx, wait.Next()) != nil {
			return b, err
		}
	}
}

// open uses a bundle, which is for one stream.
func (d *Dialer) open(ctx context.Context, b relay.Bundle, t Timers) (jsonrpc.Stream, error) {
	key, err := ParseKey(b.ExecutorPublicKey)
	if err != nil {
		return nil, err
	}
	if d.Executor != "" && key.Fingerprint() != d.Executor {
		return nil, thole.Errorf(thole.CodeForbidden, "the registry names an executor with key %s and not %s", key.Fingerprint(), d.Executor).
			WithHint("compare it with what the executor printed at its start; if it differs, the relay is not to be trusted")
	}
	ctx, cancel := context.WithTimeout(ctx, t.Handshake)
	defer cancel()
	c, err := dialSocket(ctx, b.URL)
	if err != nil {
		return nil, err
	}
	s := &harnessStream{c: c, t: t, id: uuid.NewString()}
	if err := s.handshake(ctx, d.Identity, key, b); err != nil {
		_ = c.CloseNow()
		return nil, err
	}
	alive, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Go(func() { keepAlive(alive, c, t) })
	return s, nil
}

// harnessStream is a stream with a socket of its own. A reader that pauses pauses
// the socket.
type harnessStream struct {
	c    *websocket.Conn
	t    Timers
	id   string
	stop context.CancelFunc
	wg   sync.WaitGroup
	once sync.Once

	out   recordWriter
	in    recordReader
	ready [][]byte // messages that one record brought
}

func (s *harnessStream) handshake(ctx context.Context, own *noise.Identity, executor noise.PublicKey, b relay.Bundle) error {
	p := noise.Prologue{Environment: b.EnvironmentID, Registration: b.ExecutorRegistrationID, Stream: s.id}
	hs, first, err := noise.NewInitiator(own, executor, p, []byte(b.HarnessKeyAuthorization))
	if err != nil {
		return err
	}
	for _, f := range []*relay.Frame{relay.Resume(s.id), relay.Handshake(s.id, first)} {
		if err := s.c.Write(ctx, websocket.MessageBinary, f.Append(nil)); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "relay: send the handshake: %w", err)
		}
	}
	for {
		f, err := s.frame(ctx)
		if err != nil {
			return thole.Errorf(thole.CodeUnavailable, "relay: no answer to the handshake: %w", err)
		}
		switch {
		case f == nil:
		case f.Kind == relay.KindHandshake:
			s.out = recordWriter{stream: s.id}
			s.out.cipher, s.in.cipher, err = hs.Finish(f.Payload)
			if err != nil {
				return thole.Errorf(thole.CodeForbidden, "relay: the peer that answered does not have the executor's key: %w", err)
			}
			return nil
		case f.Kind == relay.KindReset:
			return thole.Errorf(thole.CodeUnavailable, "relay: the executor refused the stream")
		default:
			return thole.Errorf(thole.CodeUnavailable, "relay: data came before the handshake ended")
		}
	}
}

// frame is the next one of this stream that means something, or nil.
func (s *harnessStream) frame(ctx context.Context) (*relay.Frame, error) {
	typ, raw, err := s.c.Read(ctx)
	if err != nil {
		return nil, err
	}
	if typ != websocket.MessageBinary {
		return nil, errors.New("relay: text instead of a frame")
	}
	f, err := relay.Parse(raw)
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case relay.KindData, relay.KindHandshake, relay.KindReset:
		if f.StreamID == s.id {
			return f, nil
		}
	}
	return nil, nil //nolint:nilnil // of another stream, or nothing to do
}

// Read implements jsonrpc.Stream.
func (s *harnessStream) Read(ctx context.Context) ([]byte, error) {
	for len(s.ready) == 0 {
		f, err := s.frame(ctx)
		if err == nil && f != nil {
			switch f.Kind {
			case relay.KindReset:
				err = io.EOF
			case relay.KindHandshake:
				err = errors.New("relay: a second handshake on an open stream")
			default:
				err = s.in.read(f.Seq, f.Payload, func(msg []byte) { s.ready = append(s.ready, msg) })
			}
		}
		if err != nil {
			_ = s.Close("")
			return nil, err
		}
	}
	msg := s.ready[0]
	s.ready[0] = nil
	s.ready = s.ready[1:]
	return msg, nil
}

// Write implements jsonrpc.Stream.
func (s *harnessStream) Write(_ context.Context, msg []byte) error {
	return s.out.write(msg, func(frame []byte) error { return send(s.c, frame, s.t) })
}

// Close implements jsonrpc.Stream. The rendezvous resets the stream for a peer
// whose socket is gone.
func (s *harnessStream) Close(string) error {
	s.once.Do(func() {
		s.stop()
		_ = s.c.CloseNow()
		s.wg.Wait()
	})
	return nil
}
