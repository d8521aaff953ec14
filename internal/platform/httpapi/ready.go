package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
)

// Part is something that a server needs to take work.
type Part struct {
	Name string
	// Helps says that a server without it still does something: people can log agents in.
	Helps bool
	Check func(context.Context) error
}

// readiness is what supervisors read. Why a part is not ready is in the log, not here:
// the route is open to everybody who reaches the server.
type readiness struct {
	Status  string            `json:"status" enum:"ok,degraded" doc:"a server that cannot take work answers 503"`
	Version string            `json:"version"`
	Parts   map[string]string `json:"parts" doc:"ok or failed, by part: store, dispatcher, logins"`
}

// readyTimeout bounds one probe.
const readyTimeout = 3 * time.Second

func (s *Server) readyRoute() {
	var mu sync.Mutex // guards failing
	failing := map[string]bool{}
	s.serve("GET /readyz", page{
		Route: Route{Public: "supervisors probe it and have no secret; it says which parts of the server are ready and not why"}, summary: "Whether the server can take work: store, dispatcher and the agents' logins",
		status: 200, media: "application/json", shapes: []any{readiness{}},
	}, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		out := readiness{Status: "ok", Version: s.cfg.Version, Parts: map[string]string{}}
		var without []string
		for _, part := range s.cfg.Ready {
			err := part.Check(ctx)
			if r.Context().Err() != nil { // nobody reads it, and the error is only that
				return
			}
			mu.Lock()
			if (err != nil) != failing[part.Name] {
				failing[part.Name] = err != nil
				s.cfg.Log.Warn("readiness of a part changed", "kind", part.Name, "err", err)
			}
			mu.Unlock()
			switch {
			case err == nil:
				out.Parts[part.Name] = "ok"
			case part.Helps:
				out.Parts[part.Name], out.Status = "failed", "degraded"
			default:
				without = append(without, part.Name)
			}
		}
		if len(without) > 0 {
			s.refuse(w, r, thole.Errorf(thole.CodeUnavailable, "not ready: %s", strings.Join(without, ", ")).WithHint("the server's log says why"))
			return
		}
		writeJSON(w, http.StatusOK, out)
	})
}
