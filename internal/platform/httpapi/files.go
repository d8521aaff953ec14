package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
)

// Files knows how far threads' files are saved. Save saves them now, after the turn
// that runs, and answers when that is over, or before if it takes long.
type Files interface {
	FilesOf(ctx context.Context, actor thole.Actor, id thole.ThreadID) (view.Files, error)
	Save(ctx context.Context, actor thole.Actor, id thole.ThreadID) (view.Files, error)
}

// noFiles is where nobody saves any.
type noFiles struct{}

func (noFiles) FilesOf(context.Context, thole.Actor, thole.ThreadID) (view.Files, error) {
	return view.Files{State: "none"}, nil
}

func (noFiles) Save(context.Context, thole.Actor, thole.ThreadID) (view.Files, error) {
	return view.Files{}, thole.Errorf(thole.CodeUnsupported, "this server saves no files")
}

func (s *Server) fileRoutes() {
	files := s.cfg.Files
	if files == nil {
		files = noFiles{}
	}
	on := func(do func(context.Context, thole.Actor, thole.ThreadID) (view.Files, error)) func(context.Context, *SessionID) (*body[view.Files], error) {
		return func(ctx context.Context, in *SessionID) (*body[view.Files], error) {
			if _, err := s.cfg.Threads.Get(ctx, actorOf(ctx), in.thread()); err != nil {
				return nil, err
			}
			return answer(do(ctx, actorOf(ctx), in.thread()))
		}
	}
	op(s, "GET", "/sessions/{session_id}/files", "How far the session's files are saved, and why not", 200, on(files.FilesOf))
	op(s, "POST", "/sessions/{session_id}/files/save", "Save the session's files now, after the run under way", 200, on(files.Save))
}
