package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// bulkIn is one change of many sessions.
type bulkIn struct {
	Action string   `json:"action" enum:"archive,unarchive,pin,unpin,delete"`
	IDs    []string `json:"ids" minItems:"1" maxItems:"200" doc:"a session that is named twice is changed once"`
}

// bulkResult is what became of one session.
type bulkResult struct {
	ID      string         `json:"id"`
	Done    bool           `json:"done"`
	Session *view.Session  `json:"session,omitempty" doc:"as it is now; absent when deleted or not done"`
	Error   *view.RunError `json:"error,omitempty" doc:"why it is not done"`
}

type bulkOut struct {
	Items []bulkResult `json:"items" doc:"in the order of the ids"`
	Done  int          `json:"done"`
}

// editSessions changes many sessions. There is no all or nothing: each one is its
// own thread, and what refuses one of them says nothing about the others. A repeat
// is harmless; a session that was deleted before is not found.
func (s *Server) editSessions(ctx context.Context, in *struct{ Body bulkIn }) (*body[bulkOut], error) {
	out := bulkOut{Items: []bulkResult{}}
	seen := map[string]bool{}
	for _, id := range in.Body.IDs {
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := ctx.Err(); err != nil {
			return nil, err // nobody reads the answer, and what is left was not asked for again
		}
		r := bulkResult{ID: id}
		switch err := s.editOne(ctx, thole.ThreadID(id), in.Body.Action, &r); {
		case err == nil:
			r.Done = true
			out.Done++
		default:
			p := s.problem(ctx, "/sessions/bulk", true, err)
			r.Error = &view.RunError{Code: thole.ErrorCode(p.Code), Message: p.Detail, Hint: p.Hint}
		}
		out.Items = append(out.Items, r)
	}
	return answer(out, nil)
}

func (s *Server) editOne(ctx context.Context, id thole.ThreadID, action string, r *bulkResult) error {
	if !thole.ValidUUID(string(id)) {
		return thole.Errorf(thole.CodeInvalid, "not a session id")
	}
	yes, no := true, false
	var u thread.Update
	switch action {
	case "delete":
		return s.cfg.Threads.Delete(ctx, actorOf(ctx), id)
	case "archive":
		u.Archived = &yes
	case "unarchive":
		u.Archived = &no
	case "pin":
		u.Pinned = &yes
	case "unpin":
		u.Pinned = &no
	}
	t, err := s.cfg.Threads.Update(ctx, actorOf(ctx), id, u)
	if err == nil {
		v := view.OfThread(t)
		r.Session = &v
	}
	return err
}
