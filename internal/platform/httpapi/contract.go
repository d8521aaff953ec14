package httpapi

import (
	"context"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/ws"
)

// Contract serves the Codex app-server protocol to one client until it or ctx ends.
type Contract = func(ctx context.Context, s jsonrpc.Stream, actor thole.Actor) error

func (s *Server) contractRoutes() {
	s.serve("GET /contract", page{summary: "The Codex app-server protocol over a WebSocket, as the user of an API token", status: http.StatusSwitchingProtocols}, s.serveContract)
}

// serveContract ends with the token: one that is revoked is out at once. Its client names no
// directory of this machine: the contract allows that to programs of the home's socket alone.
func (s *Server) serveContract(w http.ResponseWriter, r *http.Request) {
	caller := callerOf(r.Context())
	switch {
	case s.cfg.Contract == nil:
		s.refuse(w, r, thole.Errorf(thole.CodeNotFound, "this server does not serve the app-server protocol"))
		return
	case caller.token == "":
		s.refuse(w, r, thole.Errorf(thole.CodeForbidden, "the app-server protocol is for API tokens").WithHint("thole login --server makes one"))
		return
	}
	r = r.Clone(r.Context())
	r.Host = "localhost" // the guard has judged it
	ws.NewServer(ws.Options{IgnoreBinary: true, PingEvery: 30 * time.Second}, func(_ context.Context, stream jsonrpc.Stream) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, func() { _ = stream.Close("the login or token has ended") })()
		s.streams.Add(1)
		defer s.streams.Done()
		go func() {
			select {
			case <-s.stopping:
				_ = stream.Close("the server stops")
			case <-ctx.Done():
			}
		}()
		_ = s.cfg.Contract(ctx, stream, caller.actor)
	}).ServeHTTP(w, r)
}
