package appserver

import (
	"context"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/protocol/app"
)

// source is where a new thread's files come from: what the client chose, or for one that
// names a cwd that directory itself, or nothing. What it names is honoured or refused; it
// is never a label.
func (s *Server) source(ctx context.Context, c *conn, id thole.ThreadID, p *app.ThreadStartParams) (thole.Source, error) {
	r := source.Request{Name: str(p.Name), Actor: c.who(), Local: c.local()}
	dir, err := c.cwd(p.Settings)
	switch {
	case err != nil:
		return thole.Source{}, err
	case p.Source != nil && dir != "":
		return thole.Source{}, thole.Errorf(thole.CodeInvalid, "thread/start has a source and a cwd").WithHint("a source says itself where the agent works")
	case p.Source != nil && p.Source.Kind == "":
		return thole.Source{}, thole.Errorf(thole.CodeInvalid, "source has no kind").WithHint("use branch, here, template, upload or empty")
	case p.Source != nil:
		ch := p.Source
		r.Kind, r.Repo, r.Ref, r.Dir, r.Dirty, r.Upload, r.Name = thole.SourceKind(ch.Kind), ch.Repo, ch.Ref, ch.Dir, ch.Dirty, ch.Upload, ch.Name
		if r.Name == "" {
			r.Name = str(p.Name)
		}
	case dir != "" && !r.Local:
		return thole.Source{}, thole.Errorf(thole.CodeForbidden, "cwd %s: a directory of this machine may be named only by its user, on this machine", dir).
			WithHint("connect to the home's socket or use thole app-server on stdio; without a cwd the thread starts with no files")
	case dir != "":
		r.Kind, r.Dir = thole.SourceHere, dir
	}
	if s.cfg.Sources == nil {
		if r.Kind == thole.SourceEmpty || r.Kind == "" {
			return thole.Source{Kind: thole.SourceEmpty}, nil
		}
		return thole.Source{}, thole.Errorf(thole.CodeUnsupported, "this server gives threads no files")
	}
	return s.cfg.Sources.Resolve(ctx, id, r)
}

// local reports whether the client is a program of the user of this machine: it came by
// the home's socket.
func (c *conn) local() bool {
	return c.actor.Via == thole.LocalActor.Via && c.actor.User == thole.LocalUser
}

// cwd is the directory that a new thread's settings name, "" for none.
func (c *conn) cwd(set app.Settings) (string, error) {
	dir, err := cleanCwd(set)
	if err == nil && dir == "" && len(set.RuntimeWorkspaceRoots) > 0 {
		err = thole.Errorf(thole.CodeInvalid, "runtimeWorkspaceRoots without a cwd").WithHint("name the directory as cwd")
	}
	if err != nil {
		return "", err
	}
	return dir, c.roots(set, dir)
}

func cleanCwd(set app.Settings) (string, error) {
	dir := str(set.Cwd)
	if dir == "" {
		return "", nil
	}
	if !filepath.IsAbs(dir) {
		return "", thole.Errorf(thole.CodeInvalid, "cwd %q is not an absolute path", dir)
	}
	return filepath.Clean(dir), nil
}

// roots refuses roots besides the directory in which a thread works.
func (c *conn) roots(set app.Settings, dir string) error {
	for _, root := range set.RuntimeWorkspaceRoots {
		if !c.same(root, dir) {
			return thole.Errorf(thole.CodeUnsupported, "runtimeWorkspaceRoots: a thread works in its cwd alone; %s is another directory", root).
				WithHint("start a thread of its own for it, or one in a directory above both")
		}
	}
	return nil
}

// same reports whether two paths are one directory. Links of this machine are followed
// for its own user only.
func (c *conn) same(a, b string) bool {
	a, b = filepath.Clean(a), filepath.Clean(b)
	if a == b || !c.local() {
		return a == b
	}
	realA, err := filepath.EvalSymlinks(a)
	if err != nil {
		return false
	}
	realB, err := filepath.EvalSymlinks(b)
	return err == nil && realA == realB
}

// stays refuses settings that would have a thread work elsewhere.
func (c *conn) stays(set app.Settings, t fold.Thread) error {
	dir, err := cleanCwd(set)
	if err != nil {
		return err
	}
	if dir == "" || c.same(dir, t.WorkDir()) {
		return c.roots(set, t.WorkDir())
	}
	return thole.Errorf(thole.CodeUnsupported, "cwd: thread %s works in %s and cannot move to %s", t.ID, t.WorkDir(), dir).
		WithHint("start a thread there, or leave cwd out")
}

// viewFor is view with what a connection with the extension gets besides.
func (s *Server) viewFor(c *conn, t fold.Thread) app.ThreadView {
	v := s.view(t)
	if c.peer().extended {
		f := t.Files
		if f.Kind == "" {
			f.Kind = thole.SourceEmpty
		}
		v.Files = &app.Source{Kind: string(f.Kind), Repo: f.Repo, Ref: f.Ref, Commit: f.Commit, Branch: f.Branch, Dirty: f.Carried != "", Upload: f.Upload, Submodules: f.Submodules, LFS: f.LFS, LeftOut: f.LeftOut}
	}
	return v
}
