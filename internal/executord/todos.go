package executord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/eventlog"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// todoSilence is how long a stream may say nothing: proxies cut a silent one, and
// only writing finds a reader that is gone.
const todoSilence = 15 * time.Second

// TodoEvents is how a run's todos changed.
type TodoEvents struct {
	Events []wire.LogEvent `json:"events"`
	// Cursor is where to go on reading.
	Cursor uint64 `json:"cursor"`
}

func (s *Server) todos(w http.ResponseWriter, req *http.Request) {
	r, err := s.runs.find(thole.TurnID(req.PathValue("run")))
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	r.mu.Lock()
	todos := r.state.Todos
	r.mu.Unlock()
	jsonhttp.Write(w, http.StatusOK, map[string]any{"todos": append([]event.Todo{}, todos...)})
}

// todoEvents returns the todo changes after a cursor; clients that accept
// text/event-stream keep receiving them until the run ends.
func (s *Server) todoEvents(w http.ResponseWriter, req *http.Request) {
	stream := strings.Contains(req.Header.Get("Accept"), "text/event-stream")
	cursor := cmp.Or(req.URL.Query().Get("after"), "0")
	if stream { // a reader that comes back asks for the same address
		cursor = cmp.Or(req.Header.Get("Last-Event-ID"), cursor)
	}
	r, after, err := s.runAfter(req, cursor)
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	if stream {
		r.streamTodos(w, req, after)
		return
	}
	out := TodoEvents{Events: []wire.LogEvent{}, Cursor: after}
	for end, _ := r.log.End(); out.Cursor < end; {
		recs, err := r.log.Read(req.Context(), out.Cursor)
		if err != nil {
			jsonhttp.Error(w, err)
			return
		}
		out.Cursor = recs[len(recs)-1].Cursor
		out.Events = append(out.Events, todosOf(recs)...)
	}
	jsonhttp.Write(w, http.StatusOK, out)
}

// todosOf picks what concerns todos.
func todosOf(recs []eventlog.Record) (out []wire.LogEvent) {
	for _, rec := range recs {
		ev, err := wire.ReadEvent(rec.Data)
		if err == nil && (ev.Kind == event.TodoSnapshot || ev.Kind == event.TodoUpdate) {
			out = append(out, wire.LogEvent{Cursor: rec.Cursor, Event: ev})
		}
	}
	return out
}

// streamTodos sends server-sent events, each with its cursor as id and its kind as
// name, and at the end of the run one called "end". A stream that ends without it
// broke. Who has read to the end and comes back is answered 204, which makes a
// browser not to come again.
func (r *run) streamTodos(w http.ResponseWriter, req *http.Request, after uint64) {
	if end, sealed := r.log.End(); sealed && after == end {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	_ = flush.SetWriteDeadline(time.Time{})
	w.WriteHeader(http.StatusOK)
	if req.Method == http.MethodHead {
		return
	}
	for {
		if flush.Flush() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(req.Context(), todoSilence)
		recs, err := r.log.Read(ctx, after)
		cancel()
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintf(w, "id: %d\nevent: end\ndata: {}\n\n", after)
			return
		case req.Context().Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			_, _ = io.WriteString(w, ": quiet\n\n")
			continue
		case err != nil:
			panic(http.ErrAbortHandler) // a clean end would read as "the run is over"
		}
		after = recs[len(recs)-1].Cursor
		for _, ev := range todosOf(recs) {
			data, err := json.Marshal(ev)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", ev.Cursor, ev.Event.Kind, data)
		}
	}
}
