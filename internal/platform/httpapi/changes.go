package httpapi

import (
	"context"
	"io"
	"net/http"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
)

// Changes answers how threads' files changed and brings the changes out. What writes
// into a directory of this machine takes the one that the thread's files came from:
// another can be named only on the home's socket.
type Changes interface {
	Diff(ctx context.Context, actor thole.Actor, id thole.ThreadID, q ChangesQuery) (view.Changes, error)
	// Patch writes what Diff describes as one patch.
	Patch(ctx context.Context, actor thole.Actor, id thole.ThreadID, q ChangesQuery, w io.Writer) error
	Apply(ctx context.Context, actor thole.Actor, id thole.ThreadID, check bool) (view.Applied, error)
	Pull(ctx context.Context, actor thole.Actor, id thole.ThreadID, force bool) (view.Pulled, error)
	Merge(ctx context.Context, actor thole.Actor, id thole.ThreadID) (view.Merged, error)
	Push(ctx context.Context, actor thole.Actor, id thole.ThreadID, remote string, force bool) (view.Pushed, error)
	// PullRequest pushes a thread's branch and opens a request at its forge.
	PullRequest(ctx context.Context, actor thole.Actor, id thole.ThreadID, p NewPullRequest) (view.PullRequest, error)
	Undo(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn int) (view.Undone, error)
}

// NewPullRequest is what to open. What is absent is made from the session.
type NewPullRequest struct {
	Remote string `json:"remote,omitempty" maxLength:"2048" doc:"address of the repository; origin of the one that the files came from when absent"`
	Base   string `json:"base,omitempty" maxLength:"244" doc:"branch that it is for; the repository's default when absent"`
	Title  string `json:"title,omitempty" maxLength:"250"`
	Body   string `json:"body,omitempty" maxLength:"60000" doc:"Markdown"`
	Draft  bool   `json:"draft,omitempty"`
	Force  bool   `json:"force,omitempty" doc:"push also where the branch there has commits that would be lost"`
}

// ChangesQuery says which changes.
type ChangesQuery struct {
	Turn    int    `query:"turn" minimum:"0" doc:"number of a run; all runs when absent"`
	Path    string `query:"path" maxLength:"4096" doc:"this file or directory alone"`
	Patches bool   `query:"patches" doc:"with the patch of each file"`
	Context int    `query:"context" minimum:"0" maximum:"10000" default:"3" doc:"lines around each change"`
}

// changesIn is a request for changes of a session that the caller sees.
type changesIn struct {
	SessionID
	ChangesQuery
}

func (s *Server) changeRoutes() {
	changes := s.cfg.Changes
	sees := func(ctx context.Context, id thole.ThreadID) (thole.Actor, error) {
		actor := actorOf(ctx)
		_, err := s.cfg.Threads.Get(ctx, actor, id)
		if err == nil && changes == nil {
			err = thole.Errorf(thole.CodeUnsupported, "this server keeps no history of files")
		}
		return actor, err
	}
	op(s, "GET", "/sessions/{session_id}/changes", "How the session's files differ from its beginning, or before and after a run", 200, func(ctx context.Context, in *changesIn) (*body[view.Changes], error) {
		actor, err := sees(ctx, in.thread())
		if err != nil {
			return nil, err
		}
		return answer(changes.Diff(ctx, actor, in.thread(), in.ChangesQuery))
	})
	s.serve("GET /sessions/{session_id}/changes/patch", page{
		summary: "The same as one patch, byte for byte, for git apply", query: []string{"turn", "path", "context"}, status: 200, media: "text/x-diff", shapes: []any{""},
	}, func(w http.ResponseWriter, r *http.Request) {
		id := thole.ThreadID(r.PathValue("session_id"))
		actor, err := sees(r.Context(), id)
		q, bad := PatchQuery(r)
		if err == nil {
			err = bad
		}
		out := &PatchWriter{W: w}
		if err == nil {
			err = changes.Patch(r.Context(), actor, id, q, out)
		}
		switch {
		case err == nil:
			out.Begin()
		case !out.Begun():
			s.refuse(w, r, err)
		default:
			panic(http.ErrAbortHandler) // half a patch must not look like a whole one
		}
	})
	op(s, "POST", "/sessions/{session_id}/changes/apply", "Merge the changes into the directory that the files came from, without a commit", 200, func(ctx context.Context, in *struct {
		SessionID
		Body struct {
			Check bool `json:"check,omitempty" doc:"say what would happen and write nothing"`
		}
	}) (*body[view.Applied], error) {
		actor, err := sees(ctx, in.thread())
		if err != nil {
			return nil, err
		}
		return answer(changes.Apply(ctx, actor, in.thread(), in.Body.Check))
	})
	op(s, "POST", "/sessions/{session_id}/changes/pull", "Put the session's branch into the repository that the files came from", 200, func(ctx context.Context, in *struct {
		SessionID
		Body struct {
			Force bool `json:"force,omitempty" doc:"also where the branch there has commits that would be lost"`
		}
	}) (*body[view.Pulled], error) {
		actor, err := sees(ctx, in.thread())
		if err != nil {
			return nil, err
		}
		return answer(changes.Pull(ctx, actor, in.thread(), in.Body.Force))
	})
	op(s, "POST", "/sessions/{session_id}/changes/merge", "Pull the session's branch and merge it into the branch that is checked out there", 200, func(ctx context.Context, in *SessionID) (*body[view.Merged], error) {
		actor, err := sees(ctx, in.thread())
		if err != nil {
			return nil, err
		}
		return answer(changes.Merge(ctx, actor, in.thread()))
	})
	op(s, "POST", "/sessions/{session_id}/changes/push", "Push the session's branch to the repository's remote, as the user of this machine and without asking anybody", 200, func(ctx context.Context, in *struct {
		SessionID
		Body struct {
			Remote string `json:"remote,omitempty" maxLength:"2048" doc:"address; origin of the repository when absent"`
			Force  bool   `json:"force,omitempty" doc:"also where the branch there has commits that would be lost"`
		}
	}) (*body[view.Pushed], error) {
		actor, err := sees(ctx, in.thread())
		if err != nil {
			return nil, err
		}
		return answer(changes.Push(ctx, actor, in.thread(), in.Body.Remote, in.Body.Force))
	})
	op(s, "POST", "/sessions/{session_id}/changes/pr", "Push the session's branch and open a pull request at GitHub, GitLab, Gitea or Forgejo, or return the one that is open", 200, func(ctx context.Context, in *struct {
		SessionID
		Body NewPullRequest
	}) (*body[view.PullRequest], error) {
		actor, err := sees(ctx, in.thread())
		if err != nil {
			return nil, err
		}
		return answer(changes.PullRequest(ctx, actor, in.thread(), in.Body))
	})
	op(s, "POST", "/sessions/{session_id}/changes/undo", "Put the files back to what they were before a run, in a run of its own", 201, func(ctx context.Context, in *struct {
		SessionID
		Body struct {
			Turn int `json:"turn,omitempty" minimum:"0" doc:"number of the run; the last one that changed files when absent"`
		}
	}) (*body[view.Undone], error) {
		actor, err := sees(ctx, in.thread())
		if err != nil {
			return nil, err
		}
		return answer(changes.Undo(ctx, actor, in.thread(), in.Body.Turn))
	})
}

// PatchQuery reads which patch is asked for.
func PatchQuery(r *http.Request) (q ChangesQuery, err error) {
	v := r.URL.Query()
	q = ChangesQuery{Path: v.Get("path"), Context: 3}
	for name, to := range map[string]*int{"turn": &q.Turn, "context": &q.Context} {
		if text := v.Get(name); text != "" {
			if *to, err = strconv.Atoi(text); err != nil || *to < 0 || *to > 1_000_000 {
				return q, thole.Errorf(thole.CodeInvalid, "%s: %q is not a number that can be used", name, text)
			}
		}
	}
	return q, nil
}

// PatchWriter answers with the first byte, so that an error before it has its status.
type PatchWriter struct {
	W     http.ResponseWriter
	begun bool
}

// Begin answers, if nothing did yet.
func (p *PatchWriter) Begin() {
	if !p.begun {
		p.begun = true
		p.W.Header().Set("Content-Type", "text/x-diff")
		p.W.WriteHeader(http.StatusOK)
	}
}

// Begun reports whether the answer has begun.
func (p *PatchWriter) Begun() bool { return p.begun }

func (p *PatchWriter) Write(b []byte) (int, error) {
	p.Begin()
	return p.W.Write(b)
}
