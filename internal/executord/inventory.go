package executord

import (
	"context"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/provider"
)

// inventoryLimit bounds how long a CLI may take to say what it has.
const inventoryLimit = 10 * time.Second

// inventory asks the CLI of a thread what it has. It starts none: CodeConflict.
func (s *Server) inventory(w http.ResponseWriter, r *http.Request) {
	id := thole.ThreadID(r.URL.Query().Get("thread"))
	session, ok := s.session(id).(provider.Inventoried)
	if !ok {
		jsonhttp.Error(w, thole.Errorf(thole.CodeConflict, "no agent of thread %s runs here that could be asked", id))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), inventoryLimit)
	defer cancel()
	has, err := session.Inventory(ctx)
	if err != nil {
		jsonhttp.Error(w, thole.Errorf(thole.CodeUnavailable, "ask the agent: %w", err))
		return
	}
	jsonhttp.Write(w, http.StatusOK, has.Bounded())
}

// callLimit bounds how long an agent's MCP server may take to answer a client.
const callLimit = 4 * time.Minute

// callServer passes a call on to an MCP server of the agent of a thread. It starts no
// agent: CodeConflict.
func (s *Server) callServer(ctx context.Context, req wire.ServerRequest) (wire.ServerAnswer, error) {
	session := s.session(req.Thread)
	if session == nil {
		return wire.ServerAnswer{}, thole.Errorf(thole.CodeConflict, "no agent of thread %s runs here that could be asked", req.Thread)
	}
	served, ok := session.(provider.Served)
	if !ok {
		return wire.ServerAnswer{}, thole.Errorf(thole.CodeUnsupported, "this agent calls its servers itself, and nobody else can").WithHint("ask the agent for it in a message")
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := served.CallServer(ctx, req.ServerCall)
	if err == nil && len(out) > provider.MaxServerAnswer {
		err = thole.Errorf(thole.CodeUnsupported, "the server answered %d bytes; %d are passed on", len(out), provider.MaxServerAnswer)
	}
	return wire.ServerAnswer{Result: out}, err
}
