package changes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/strictjson"
)

// Methods of the home's owner for changes.
const (
	// MethodDiff describes how a thread's files changed; PatchPath has it as a patch.
	MethodDiff = "thole/thread/diff"
	// MethodApply, MethodPull and MethodMerge bring changes into directories of this machine.
	MethodApply = "thole/thread/apply"
	MethodPull  = "thole/thread/pull"
	MethodMerge = "thole/thread/merge"
	// MethodPush makes what the client pushes with the user's own git and terminal.
	MethodPush = "thole/thread/push"
	// MethodPullRequest opens a pull request for a branch that the client has pushed.
	MethodPullRequest = "thole/thread/pr"
	// MethodUndo starts a turn that puts files back, MethodUndone waits for its end.
	MethodUndo   = "thole/thread/undo"
	MethodUndone = "thole/thread/undone"
)

// DiffParams says which changes of which thread.
type DiffParams struct {
	Thread  thole.ThreadID `json:"thread_id"`
	Turn    int            `json:"turn,omitempty"`
	Path    []byte         `json:"path,omitempty"` // may be no UTF-8
	Patches bool           `json:"patches,omitempty"`
	Context int            `json:"context,omitempty"`
}

func (p DiffParams) query() httpapi.ChangesQuery {
	return httpapi.ChangesQuery{Turn: p.Turn, Path: string(p.Path), Patches: p.Patches, Context: p.Context}
}

// ApplyParams names a thread, and a directory: To if it is set, else where the files came
// from, else Cwd.
type ApplyParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	To     string         `json:"to,omitempty"`
	Cwd    string         `json:"cwd,omitempty"`
	Mode   shelf.Mode     `json:"mode,omitempty"`
}

// PullParams are those of MethodPull and MethodMerge; As names another branch.
type PullParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	To     string         `json:"to,omitempty"`
	Cwd    string         `json:"cwd,omitempty"`
	As     string         `json:"as,omitempty"`
	Force  bool           `json:"force,omitempty"`
}

// PushParams name a thread, and what differs from its own branch and remote.
type PushParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Remote string         `json:"remote,omitempty"`
	As     string         `json:"as,omitempty"`
	Force  bool           `json:"force,omitempty"`
}

// PushResult is what to run: git with Args, in Dir.
type PushResult struct {
	view.Pushed
	Commits int      `json:"commits"`
	Dir     string   `json:"dir"`
	Args    []string `json:"args"`
}

// UndoParams name a thread and the turn before which the files are to be; 0 is the last
// one that changed any.
type UndoParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Turn   int            `json:"turn,omitempty"`
}

// UndoneParams name the turn of an undo.
type UndoneParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Turn   thole.TurnID   `json:"turn_id"`
}

// UndoneResult says what an undo did.
type UndoneResult struct {
	Text string `json:"text"`
}

// Methods are served on the home's socket.
func (s *Service) Methods() map[string]daemon.Method {
	return map[string]daemon.Method{
		MethodDiff: method(func(ctx context.Context, actor thole.Actor, p DiffParams) (any, error) {
			return s.Diff(ctx, actor, p.Thread, p.query())
		}),
		MethodApply: method(func(ctx context.Context, actor thole.Actor, p ApplyParams) (any, error) {
			return s.apply(ctx, actor, p)
		}),
		MethodPull:  method(func(ctx context.Context, actor thole.Actor, p PullParams) (any, error) { return s.pull(ctx, actor, p) }),
		MethodMerge: method(func(ctx context.Context, actor thole.Actor, p PullParams) (any, error) { return s.merge(ctx, actor, p) }),
		MethodPush: method(func(ctx context.Context, actor thole.Actor, p PushParams) (any, error) {
			return s.Prepare(ctx, actor, p)
		}),
		MethodPullRequest: method(func(ctx context.Context, actor thole.Actor, p PullRequestParams) (any, error) {
			return s.request(ctx, actor, p)
		}),
		MethodUndo: method(func(ctx context.Context, actor thole.Actor, p UndoParams) (any, error) {
			return s.Undo(ctx, actor, p.Thread, p.Turn)
		}),
		MethodUndone: method(func(ctx context.Context, actor thole.Actor, p UndoneParams) (any, error) {
			return s.undone(ctx, actor, p)
		}),
	}
}

func method[P any](do func(context.Context, thole.Actor, P) (any, error)) daemon.Method {
	return func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
		var p P
		if err := strictjson.Unmarshal(params, &p); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "changes: %w", err)
		}
		return do(ctx, actor, p)
	}
}

// PatchPath is where the home's socket has a thread's changes as one patch, byte for byte.
func PatchPath(id thole.ThreadID) string { return "/threads/" + string(id) + "/patch" }

// PatchQuery says which changes.
func PatchQuery(p DiffParams) string {
	return url.Values{"turn": {strconv.Itoa(p.Turn)}, "path": {string(p.Path)}, "context": {strconv.Itoa(p.Context)}}.Encode()
}

// ServePatch answers at PatchPath.
func (s *Service) ServePatch(w http.ResponseWriter, r *http.Request) {
	q, err := httpapi.PatchQuery(r)
	out := &httpapi.PatchWriter{W: w}
	if err == nil {
		err = s.Patch(r.Context(), thole.LocalActor, thole.ThreadID(r.PathValue("thread")), q, out)
	}
	switch {
	case err == nil:
		out.Begin()
	case !out.Begun():
		jsonhttp.Error(w, err)
	default:
		panic(http.ErrAbortHandler) // half a patch must not look like a whole one
	}
}
