package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway/upstream"
)

// Connections says where the credentials of an agent's model calls are from, for what an
// owner runs; check has each tried at its service.
type Connections func(ctx context.Context, who thole.Owner, provider string, check bool) ([]upstream.Checked, error)

// connection is how an agent reaches its models.
type connection struct {
	Provider string             `json:"provider"`
	Title    string             `json:"title"`
	Sources  []upstream.Checked `json:"sources" doc:"what counts, the first for each model service"`
	Problem  string             `json:"problem,omitempty" doc:"why it reaches none"`
	Hint     string             `json:"hint,omitempty"`
}

func (s *Server) connectionRoutes() {
	op(s, "GET", "/connections", "How agents reach their models: which credential is used and where it is from", 200, func(ctx context.Context, in *struct {
		Check bool `query:"check" doc:"ask each service, by one call that costs nothing, whether it takes the credential"`
	}) (*body[list[connection]], error) {
		if s.cfg.Connections == nil {
			return nil, thole.Errorf(thole.CodeUnsupported, "no models are reached from here")
		}
		if s.cfg.Settle != nil {
			s.cfg.Settle()
		}
		who := thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: actorOf(ctx).User}
		out := list[connection]{Items: []connection{}}
		for _, p := range s.cfg.Providers() {
			if p.Name == "test" { // the scripted agent has no model
				continue
			}
			c := connection{Provider: p.Name, Title: p.Title, Sources: []upstream.Checked{}}
			sources, err := s.cfg.Connections(ctx, who, p.Name, in.Check)
			if err != nil {
				c.Problem, c.Hint = err.Error(), thole.HintOf(err)
			}
			c.Sources = append(c.Sources, sources...)
			out.Items = append(out.Items, c)
		}
		return answer(out, nil)
	})
}
