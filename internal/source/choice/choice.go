// Package choice serves every door at which a source is chosen: it makes a thread's
// source of a request, by the resolver of its kind, and offers what there is to choose
// from: directories and repositories of this machine, what was used before, uploads. A
// member that the kind does not have, and a place that the caller may not name, are
// refused by name. It lays no files and runs git in boxes only.
package choice

import (
	"cmp"
	"context"
	"io"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/store"
)

// Config makes a Service.
type Config struct {
	// Default is what a thread gets whose maker chose nothing; its zero value is empty.
	Default source.Request
	// Branch and Here resolve their kinds; nil: the kind is refused.
	Branch Repositories
	Here   source.Resolver
	// Uploads keeps what clients send; nil: nothing is taken.
	Uploads Uploads
	// Template reports whether the app has a template.
	Template func(ctx context.Context) (bool, error)
	Index    *store.Index
	// Home is thole's own directory, and KeyDir a name under which keys are kept: neither
	// is listed.
	Home   string
	KeyDir func(name string) bool
}

// Repositories makes branches, and looks into repositories.
type Repositories interface {
	source.Resolver
	// Inspect looks into the repository of this machine that a directory is in.
	Inspect(ctx context.Context, path string) (view.Repository, error)
	// Names lists files of the repository that a directory is in.
	Names(ctx context.Context, path, ref string, dirty bool) ([]string, error)
}

// Uploads keeps what clients send until a thread is made of it.
type Uploads interface {
	source.Resolver
	Take(ctx context.Context, actor thole.Actor, media string, params map[string]string, body io.Reader) (view.Upload, error)
}

// Service makes sources and offers what they can be made of.
type Service struct {
	cfg   Config
	names listing
}

// New makes a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Inspect looks into a repository of this machine.
func (s *Service) Inspect(ctx context.Context, path string) (view.Repository, error) {
	at, err := s.openable(path)
	if err != nil {
		return view.Repository{}, err
	}
	if s.cfg.Branch == nil {
		return view.Repository{}, thole.Errorf(thole.CodeUnsupported, "this server reads no repositories")
	}
	return s.cfg.Branch.Inspect(ctx, at)
}

// Resolve implements source.Resolver. No kind means that nobody chose.
func (s *Service) Resolve(ctx context.Context, id thole.ThreadID, r source.Request) (thole.Source, error) {
	if r.Kind == "" && s.cfg.Default.Kind == "" {
		r.Kind = thole.SourceEmpty
	} else if r.Kind == "" {
		name, actor := r.Name, r.Actor
		r = s.cfg.Default
		r.Name, r.Actor = name, actor
	}
	if err := members(r); err != nil {
		return thole.Source{}, err
	}
	switch r.Kind {
	case thole.SourceEmpty:
		return thole.Source{Kind: thole.SourceEmpty}, nil
	case thole.SourceTemplate:
		have, err := s.cfg.Template(ctx)
		if err == nil && !have {
			err = thole.Errorf(thole.CodeNotFound, "source template: the app has no template").
				WithHint("name one in the manifest of workspace.manifest (workspaceTemplatePrefix), or use source empty")
		}
		return thole.Source{Kind: thole.SourceTemplate}, err
	case thole.SourceBranch:
		r.Name = source.Slug(r.Name, id)
		return by(ctx, s.cfg.Branch, id, r)
	case thole.SourceHere:
		if !r.Local {
			return thole.Source{}, thole.Errorf(thole.CodeForbidden, "source here: a directory of this machine may be named only by its user, on this machine").
				WithHint("use the thole command or the page of `thole up` on this machine, or send the files as an upload")
		}
		return by(ctx, s.cfg.Here, id, r)
	}
	return by(ctx, s.cfg.Uploads, id, r) // the only kind that members left
}

func by[R source.Resolver](ctx context.Context, resolver R, id thole.ThreadID, r source.Request) (thole.Source, error) {
	if source.Resolver(resolver) == nil {
		return thole.Source{}, thole.Errorf(thole.CodeUnsupported, "source %s is not offered here", r.Kind)
	}
	return resolver.Resolve(ctx, id, r)
}

// members refuses a kind that does not exist, and what a kind does not have.
func members(r source.Request) error {
	has := map[thole.SourceKind]struct{ repo, dir, upload bool }{
		thole.SourceEmpty: {}, thole.SourceTemplate: {}, thole.SourceBranch: {repo: true, dir: true},
		thole.SourceHere: {dir: true}, thole.SourceUpload: {upload: true},
	}
	kind, ok := has[r.Kind]
	if !ok {
		return thole.Errorf(thole.CodeInvalid, "unknown source kind %q", r.Kind).WithHint("use branch, here, template, upload or empty")
	}
	for _, m := range []struct {
		name  string
		given bool
		has   bool
		needs bool
	}{
		{"repo", r.Repo != "", kind.repo, r.Kind == thole.SourceBranch}, {"ref", r.Ref != "", kind.repo, false}, {"dirty", r.Dirty, kind.repo, false},
		{"dir", r.Dir != "", kind.dir, r.Kind == thole.SourceHere}, {"upload", r.Upload != "", kind.upload, r.Kind == thole.SourceUpload},
	} {
		if m.given && !m.has {
			return thole.Errorf(thole.CodeInvalid, "source %s has no %s", r.Kind, m.name)
		}
		if m.needs && !m.given {
			return thole.Errorf(thole.CodeInvalid, "source %s needs %s", r.Kind, m.name)
		}
	}
	return nil
}

// maxRecent bounds what Recent lists.
const maxRecent = 30

// Recent lists what the actor's threads worked on, the newest first.
func (s *Service) Recent(ctx context.Context, actor thole.Actor) ([]view.RecentSource, error) {
	used, err := s.cfg.Index.Sources(ctx, actor.User, maxRecent)
	out := make([]view.RecentSource, 0, len(used))
	for _, u := range used {
		out = append(out, view.RecentSource{Kind: u.Kind, At: u.At, UsedAt: u.Used})
	}
	return out, err
}

// Default is what a thread's files come from whose maker chose nothing.
func (s *Service) Default() view.SourceChoice {
	d := s.cfg.Default
	return view.SourceChoice{Kind: cmp.Or(d.Kind, thole.SourceEmpty), Repo: d.Repo, Ref: d.Ref, Dir: d.Dir, Dirty: d.Dirty}
}

// TakeUpload keeps what a client sends.
func (s *Service) TakeUpload(ctx context.Context, actor thole.Actor, media string, params map[string]string, body io.Reader) (view.Upload, error) {
	if s.cfg.Uploads == nil {
		return view.Upload{}, thole.Errorf(thole.CodeUnsupported, "this server takes no uploads")
	}
	return s.cfg.Uploads.Take(ctx, actor, media, params, body)
}
