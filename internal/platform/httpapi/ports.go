package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/preview"
)

// portRoutes open web servers of agents to the caller's browser. Only who may manage
// logins may: what an agent shows there is looked at by a person.
func (s *Server) portRoutes() {
	op(s, "GET", "/sessions/{session_id}/ports", "List the open ports of a session's agent", 200, func(ctx context.Context, in *SessionID) (*body[list[preview.Port]], error) {
		if err := s.seesPorts(ctx, in.thread()); err != nil {
			return nil, err
		}
		return listed(s.cfg.Previews.List(ctx, in.thread()), nil)
	})
	op(s, "POST", "/sessions/{session_id}/ports", "Open a port of the agent's box on an origin of its own; needs scope admin", 201, func(ctx context.Context, in *struct {
		SessionID
		Body struct {
			Port uint16 `json:"port" minimum:"1" maximum:"65535" doc:"that the agent's server listens on"`
		}
	}) (*body[preview.Port], error) {
		if err := s.seesPorts(ctx, in.thread()); err != nil {
			return nil, err
		}
		w := ctx.Value(whoKey).(who)
		return answer(s.cfg.Previews.Open(ctx, in.thread(), in.Body.Port, preview.By{ID: w.by.ID, Ends: w.by.Ends, Hold: func() (context.Context, context.CancelFunc) {
			return s.cfg.Sessions.Hold(context.Background(), w.by.ID)
		}}))
	})
	op(s, "DELETE", "/sessions/{session_id}/ports/{port}", "Close a port; needs scope admin", 204, func(ctx context.Context, in *struct {
		SessionID
		Port uint16 `path:"port" minimum:"1" maximum:"65535"`
	}) (*empty, error) {
		if err := s.seesPorts(ctx, in.thread()); err != nil {
			return nil, err
		}
		return done(s.cfg.Previews.Close(in.thread(), in.Port))
	})
}

func (s *Server) seesPorts(ctx context.Context, id thole.ThreadID) error {
	_, err := s.cfg.Threads.Get(ctx, actorOf(ctx), id)
	if err == nil && s.cfg.Previews == nil {
		err = thole.Errorf(thole.CodeUnsupported, "ports of agents are not shown here")
	}
	return err
}
