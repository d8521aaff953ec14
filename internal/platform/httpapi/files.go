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
	// SearchFiles finds files of the workspace, best first, and starts its executor for it.
	SearchFiles(ctx context.Context, actor thole.Actor, id thole.ThreadID, query string) ([]view.FoundFile, error)
}

// noFiles is where nobody saves any.
type noFiles struct{}

func (noFiles) FilesOf(context.Context, thole.Actor, thole.ThreadID) (view.Files, error) {
	return view.Files{State: "none"}, nil
}

func (noFiles) Save(context.Context, thole.Actor, thole.ThreadID) (view.Files, error) {
	return view.Files{}, thole.Errorf(thole.CodeUnsupported, "this server saves no files")
}

func (noFiles) SearchFiles(context.Context, thole.Actor, thole.ThreadID, string) ([]view.FoundFile, error) {
	return nil, thole.Errorf(thole.CodeUnsupported, "this server has no files")
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
	op(s, "GET", "/sessions/{session_id}/files/search", "Find files of the session's workspace by a part of their path, best first", 200, func(ctx context.Context, in *struct {
		SessionID
		Query string `query:"q" maxLength:"200" doc:"characters of the path in their order; the outermost files when absent"`
	}) (*body[list[view.FoundFile]], error) {
		if _, err := s.cfg.Threads.Get(ctx, actorOf(ctx), in.thread()); err != nil {
			return nil, err
		}
		items, err := files.SearchFiles(ctx, actorOf(ctx), in.thread(), in.Query)
		return answer(list[view.FoundFile]{Items: items}, err)
	})
	op(s, "POST", "/sessions/{session_id}/files/save", "Save the session's files now, after the run under way", 200, on(files.Save))
}
