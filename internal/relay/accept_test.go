package relay

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay/noise"
)

// TestNoStreamIsReplaced: a harness with two authorizations sends two handshakes for one
// stream. When the second passed while the first was between its check and its place, the
// first was served and in no list: neither a reset nor the loss of the socket ended it.
func TestNoStreamIsReplaced(t *testing.T) {
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		for err == nil {
			_, _, err = c.Read(r.Context())
		}
	}))
	defer peer.Close()
	c, _, err := websocket.Dial(t.Context(), peer.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	executor, err := noise.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{}, 2)
	m := &mux{
		e: &Executor{Identity: executor, Serve: func(ctx context.Context, s jsonrpc.Stream) {
			served <- struct{}{}
			_, _ = s.Read(ctx) // until the stream has ended
		}},
		c: c, t: Timers{}.withDefaults(), log: slog.New(slog.DiscardHandler), control: make(chan []byte, controlFrames),
		streams: map[string]*executorStream{}, pending: map[string]context.CancelFunc{},
	}
	var wg sync.WaitGroup
	accept := func() (done chan struct{}) {
		harness, err := noise.NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		_, first, err := noise.NewInitiator(harness, executor.Public(), noise.Prologue{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		hs, err := noise.NewResponder(executor, noise.Prologue{}, first)
		if err != nil {
			t.Fatal(err)
		}
		done = make(chan struct{})
		wg.Go(func() { defer close(done); m.accept(context.Background(), "s", hs) })
		return done
	}
	m.pending["s"] = func() {}
	accept()
	<-served
	if len(m.pending) > 0 {
		t.Error("a stream that is served is still pending")
	}
	select {
	case <-served:
		t.Fatal("the second took the place of the first")
	case <-accept():
	}
	if len(m.control) != 1 || m.failures != 1 {
		t.Errorf("the second got %d resets and was counted %d times", len(m.control), m.failures)
	}
	m.end()
	wg.Wait() // nothing is left
}
