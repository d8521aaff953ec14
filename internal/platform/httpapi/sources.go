package httpapi

import (
	"context"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/source"
)

// Sources makes sessions' sources and offers what they can be made of.
type Sources interface {
	source.Resolver
	// Folders lists the directories in a directory of this machine; "" is the user's home.
	Folders(ctx context.Context, path string) (view.Folders, error)
	// Recent lists what the actor's threads worked on, the newest first.
	Recent(ctx context.Context, actor thole.Actor) ([]view.RecentSource, error)
	// Default is what a session's files come from where its client chose nothing.
	Default() view.SourceChoice
	// Inspect looks into a repository of this machine.
	Inspect(ctx context.Context, repo string) (view.Repository, error)
	// SearchFiles finds files that a thread on a repository or directory of this machine would
	// have, best first.
	SearchFiles(ctx context.Context, of view.SourceChoice, query string) ([]view.FoundFile, error)
	// TakeUpload keeps what a client sends: an archive of the format, or with
	// multipart/form-data files whose form names are their paths.
	TakeUpload(ctx context.Context, actor thole.Actor, media string, params map[string]string, body io.Reader) (view.Upload, error)
}

// MaxUpload bounds the body of an upload.
const MaxUpload = 1 << 30

func (s *Server) sourceRoutes() {
	op(s, "GET", "/sources/folders", "List directories of this machine; for the page on this machine only", 200, func(ctx context.Context, in *struct {
		Path string `query:"path" maxLength:"4096" doc:"absolute; the user's home when absent"`
	}) (*body[view.Folders], error) {
		src, err := s.localSources(ctx)
		if err != nil {
			return nil, err
		}
		return answer(src.Folders(ctx, in.Path))
	})
	op(s, "GET", "/sources/recent", "List repositories and directories that sessions worked on, newest first", 200, func(ctx context.Context, _ *struct{}) (*body[offeredSources], error) {
		if s.cfg.Sources == nil {
			return nil, errNoSources()
		}
		all, err := s.cfg.Sources.Recent(ctx, actorOf(ctx))
		return answer(offeredSources{Items: append([]view.RecentSource{}, all...), Default: s.cfg.Sources.Default()}, err)
	})
	op(s, "GET", "/sources/inspect", "Show a repository's branches and uncommitted changes; for the page on this machine only", 200, func(ctx context.Context, in *struct {
		Repo string `query:"repo" required:"true" minLength:"1" maxLength:"4096" doc:"absolute path of the repository or a directory in it"`
	}) (*body[view.Repository], error) {
		src, err := s.localSources(ctx)
		if err != nil {
			return nil, err
		}
		return answer(src.Inspect(ctx, in.Repo))
	})
	op(s, "GET", "/sources/files", "Find files of a repository or directory by a part of their path, best first; for the page on this machine only", 200, func(ctx context.Context, in *struct {
		Kind  thole.SourceKind `query:"kind" required:"true" enum:"branch,here" doc:"what a session would begin with"`
		Repo  string           `query:"repo" maxLength:"4096" doc:"of a branch: absolute path of the repository"`
		Ref   string           `query:"ref" maxLength:"500" doc:"of a branch: where it begins"`
		Dirty bool             `query:"dirty" doc:"of a branch: with changes that are not committed"`
		Dir   string           `query:"dir" maxLength:"4096" doc:"of here: the absolute path"`
		Query string           `query:"q" maxLength:"200" doc:"characters of the path in their order; the outermost files when absent"`
	}) (*body[list[view.FoundFile]], error) {
		src, err := s.localSources(ctx)
		if err != nil {
			return nil, err
		}
		items, err := src.SearchFiles(ctx, view.SourceChoice{Kind: in.Kind, Repo: in.Repo, Ref: in.Ref, Dirty: in.Dirty, Dir: in.Dir}, in.Query)
		return answer(list[view.FoundFile]{Items: items}, err)
	})
	s.serve("POST /uploads", page{
		Route: Route{Large: true}, summary: "Send an archive (zip, tar, tar.gz, tar.zst), or files as multipart/form-data whose form names are their paths",
		status: http.StatusCreated, media: "application/json", shapes: []any{view.Upload{}}, takes: uploadMedia,
	}, s.takeUpload)
}

// offeredSources are what a page offers first.
type offeredSources struct {
	Items   []view.RecentSource `json:"items"`
	Default view.SourceChoice   `json:"default" doc:"of a session that names no source"`
}

// uploadMedia are the forms of an upload.
var uploadMedia = []string{"application/zip", "application/x-tar", "application/gzip", "application/zstd", "multipart/form-data"}

func errNoSources() error {
	return thole.Errorf(thole.CodeUnsupported, "this server gives sessions no files")
}

// localSources refuses callers who are not at this machine.
func (s *Server) localSources(ctx context.Context) (Sources, error) {
	if s.cfg.Sources == nil {
		return nil, errNoSources()
	}
	if !callerOf(ctx).local {
		return nil, thole.Errorf(thole.CodeForbidden, "directories of this machine are shown only on its own page").
			WithHint("open the link that `thole up` printed in a browser of this machine, or name a URL or an upload")
	}
	return s.cfg.Sources, nil
}

// sourceOf makes the source of a session that is about to be made.
func (s *Server) sourceOf(ctx context.Context, id thole.ThreadID, c *view.SourceChoice, name string) (thole.Source, error) {
	if c == nil {
		c = &view.SourceChoice{}
	} else if c.Kind == "" {
		return thole.Source{}, thole.Errorf(thole.CodeInvalid, "a source has no kind").WithHint("use branch, here, template, upload or empty")
	}
	r := source.Request{
		Kind: c.Kind, Repo: c.Repo, Ref: c.Ref, Dir: c.Dir, Dirty: c.Dirty, Upload: c.Upload, Name: c.Name, Actor: actorOf(ctx), Local: callerOf(ctx).local,
	}
	if r.Name == "" {
		r.Name = name
	}
	if s.cfg.Sources == nil {
		if r.Kind == thole.SourceEmpty || r.Kind == "" {
			return thole.Source{Kind: thole.SourceEmpty}, nil
		}
		return thole.Source{}, errNoSources()
	}
	return s.cfg.Sources.Resolve(ctx, id, r)
}

// local reports whether a request was made by a browser of this machine that is logged
// in as its user. A token may be anywhere, and what a proxy passes on came from
// elsewhere.
func (s *Server) local(r *http.Request, w who) bool {
	if !s.cfg.Local || w.actor.Via != "cookie" || w.actor.User != thole.LocalUser {
		return false
	}
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if host == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

func (s *Server) takeUpload(w http.ResponseWriter, r *http.Request) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "%w", errMedia).WithHint("use one of %v", uploadMedia))
		return
	}
	if s.cfg.Sources == nil {
		s.refuse(w, r, errNoSources())
		return
	}
	up, err := s.cfg.Sources.TakeUpload(r.Context(), actorOf(r.Context()), media, params, r.Body)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, up)
}
