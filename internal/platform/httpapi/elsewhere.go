package httpapi

import (
	"context"
	"net/http"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Elsewhere finds where the executor and the saved states of a thread's files are: it returns what
// passes a request on to that server, nil where they are on this one.
type Elsewhere func(ctx context.Context, id thole.ThreadID) (pass func(http.ResponseWriter, *http.Request), err error)

// atExecutor are the routes that only the server of a thread's executor can answer.
func atExecutor(path string) bool {
	rest, ok := strings.CutPrefix(path, "/sessions/{session_id}/")
	return ok && (rest == "changes" || strings.HasPrefix(rest, "changes/") || rest == "files/search")
}

// Peer answers requests that another server of the store passed on. Who asks proves it here again,
// and it is answered here in any case.
func (s *Server) Peer() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), peerKey, true)))
	})
}

func fromPeer(ctx context.Context) bool {
	from, _ := ctx.Value(peerKey).(bool)
	return from
}

// passed hands a request to the server that can answer it, with the proof of its caller; false if
// that is this one. Who may not do it is answered here, as for a thread that there is not: where
// another's thread runs, and that it does, is nothing that a server without an answer gives away.
func (s *Server) passed(w http.ResponseWriter, r *http.Request, rt Route) bool {
	if s.cfg.Elsewhere == nil || fromPeer(r.Context()) || !atExecutor(rt.Path) {
		return false
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	id, _, _ := strings.Cut(rest, "/")
	if _, err := s.cfg.Threads.Get(authz.Doing(authz.Sifting(r.Context()), rt.Action), actorOf(r.Context()), thole.ThreadID(id)); err != nil {
		return false
	}
	pass, err := s.cfg.Elsewhere(r.Context(), thole.ThreadID(id))
	if err != nil {
		s.refuse(w, r, err)
		return true
	}
	if pass == nil {
		return false
	}
	caller := callerOf(r.Context())
	out := r.Clone(r.Context())
	out.Header.Set(peerAddressHeader, s.address(r))
	if caller.token != "" {
		out.Header.Set("Authorization", "Bearer "+caller.token)
	} else { // the cookie is there: no ticket works without it
		out.Header.Set(ProofHeader, caller.login.Proof)
	}
	pass(w, out)
	return true
}
