package appschema

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/ws"
)

// Watch returns a client's end of a stream on which all that the server sends is
// checked. Where codex is not
// installed nothing is, except that in CI the test fails.
func Watch(t testing.TB, s jsonrpc.Stream) jsonrpc.Stream {
	t.Helper()
	if !lab.HasCodex(t) {
		return s
	}
	r := Installed(t).NewRecorder(func(problem string) { t.Error(problem) })
	r.ServerOnly = true
	return r.Client(s)
}

// Client returns a client's end of a stream whose traffic the recorder sees.
func (r *Recorder) Client(s jsonrpc.Stream) jsonrpc.Stream { return &watched{s, r} }

type watched struct {
	jsonrpc.Stream
	r *Recorder
}

func (w *watched) Read(ctx context.Context) ([]byte, error) {
	b, err := w.Stream.Read(ctx)
	if err == nil {
		w.r.See(false, b)
	}
	return b, err
}

func (w *watched) Write(ctx context.Context, b []byte) error {
	w.r.See(true, b)
	return w.Stream.Write(ctx, b)
}

// Proxy listens on a unix socket for clients of the server at addr, a unix:// or ws://
// address, and passes everything on; each connection gets a recorder of its own from
// open. It ends with the test.
func Proxy(t testing.TB, addr string, open func() *Recorder) string {
	t.Helper()
	own := "unix://" + filepath.Join(t.TempDir(), "p.sock")
	a, err := transport.ParseListen(own)
	if err != nil {
		t.Fatal(err)
	}
	auth, err := transport.NewAuth(transport.AuthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := transport.Listen(a, auth)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() {
		_ = ws.NewServer(ws.Options{Auth: auth, IgnoreBinary: true}, func(ctx context.Context, client jsonrpc.Stream) {
			server, err := ws.Dial(ctx, addr, ws.DialOptions{})
			if err != nil {
				t.Logf("dial %s: %v", addr, err) // a server that was killed; the client tries again
				_ = client.Close("no server")
				return
			}
			both(ctx, client, open().Client(server))
		}).Serve(ctx, l)
	})
	return own
}

// both passes messages on until either side ends.
func both(ctx context.Context, client, server jsonrpc.Stream) {
	var wg sync.WaitGroup
	pass := func(from, to jsonrpc.Stream) {
		for {
			b, err := from.Read(ctx)
			if err != nil || to.Write(ctx, b) != nil {
				_ = to.Close("the other side ended")
				_ = from.Close("the other side ended")
				return
			}
		}
	}
	wg.Go(func() { pass(client, server) })
	wg.Go(func() { pass(server, client) })
	wg.Wait()
}
