package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
)

type health struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

// providersOut says which agents this machine has.
type providersOut struct {
	Items   []provider.Info `json:"items"`
	Default string          `json:"default,omitempty"`
}

// Document is the OpenAPI document of everything that the server answers, besides
// the web UI.
func (s *Server) Document() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) }

func (s *Server) machineRoutes() {
	alive := func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, health{"ok", s.cfg.Version}) }
	probe := page{Route: Route{Public: "supervisors probe it and have no secret; it says only that the server is there"}, summary: "Whether the server is there", status: 200, media: "application/json", shapes: []any{health{}}}
	s.serve("GET /healthz", probe, alive)
	s.readyRoute()
	if s.cfg.Metrics != nil {
		s.serve("GET /metrics", page{summary: "Counters for Prometheus", status: 200, media: "text/plain", shapes: []any{""}}, s.cfg.Metrics.ServeHTTP)
	}
	document := sync.OnceValues(s.Document)
	s.serve("GET /openapi.json", page{summary: "This document", status: 200, media: "application/openapi+json"}, func(w http.ResponseWriter, r *http.Request) {
		b, err := document()
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(b)
	})
	op(s, "GET", "/providers", "Which agents are here and what they can do", 200, func(context.Context, *struct{}) (*body[providersOut], error) {
		if s.cfg.Settle != nil {
			s.cfg.Settle()
		}
		out := providersOut{Items: append([]provider.Info{}, s.cfg.Providers()...), Default: s.defaultProvider()}
		for i := range out.Items {
			out.Items[i].Profiles = append([]provider.ProfileMap{}, out.Items[i].Profiles...)
			out.Items[i].Modes = append([]table.Mode{}, out.Items[i].Modes...)
		}
		return answer(out, nil)
	})
}
