package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/usage"
	"github.com/tholehq/thole/internal/provider"
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

// usageSum is what runs used.
type usageSum struct {
	Key        string `json:"key,omitempty"`
	Runs       int64  `json:"runs"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	Reasoning  int64  `json:"reasoning"`
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
	CostMicros int64  `json:"cost_micros" doc:"millionths of a US dollar, without the unpriced runs"`
	Unpriced   int64  `json:"unpriced_runs"`
}

func sumOf(s usage.Sum) usageSum {
	return usageSum{s.Key, s.Turns, s.Input, s.Output, s.Reasoning, s.CacheRead, s.CacheWrite, s.CostMicros, s.Unpriced}
}

type usageOut struct {
	Total  usageSum   `json:"total"`
	Groups []usageSum `json:"groups"`
}

// Document is the OpenAPI document of everything that the server answers, besides
// the web UI.
func (s *Server) Document() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) }

func (s *Server) machineRoutes() {
	alive := func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, health{"ok", s.cfg.Version}) }
	probe := page{Route: Route{Public: "supervisors probe it and have no secret; it says only that the server is there"}, summary: "Whether the server is there", status: 200, media: "application/json", shapes: []any{health{}}}
	s.serve("GET /healthz", probe, alive)
	s.serve("GET /readyz", probe, alive)
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
		}
		return answer(out, nil)
	})
	op(s, "GET", "/usage", "What runs used", 200, func(ctx context.Context, in *struct {
		From    time.Time `query:"from"`
		To      time.Time `query:"to" doc:"exclusive"`
		Session string    `query:"session_id"`
		Group   string    `query:"group" enum:"day,provider,model,session"`
	}) (*body[usageOut], error) {
		q := usage.Query{User: actorOf(ctx).User, Thread: thole.ThreadID(in.Session), From: in.From, To: in.To, By: usage.By(in.Group)}
		sums, err := s.cfg.Index.Usage(ctx, q)
		out := usageOut{Groups: []usageSum{}}
		for _, v := range sums {
			out.Total.Runs += v.Turns
			out.Total.Input += v.Input
			out.Total.Output += v.Output
			out.Total.Reasoning += v.Reasoning
			out.Total.CacheRead += v.CacheRead
			out.Total.CacheWrite += v.CacheWrite
			out.Total.CostMicros += v.CostMicros
			out.Total.Unpriced += v.Unpriced
			if q.By != "" {
				out.Groups = append(out.Groups, sumOf(v))
			}
		}
		return answer(out, err)
	})
}
