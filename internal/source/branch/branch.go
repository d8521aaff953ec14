// Package branch makes threads' files of git repositories: a copy on a branch of its own
// that shares its objects with the repository it comes from. Resolve looks at a
// repository, holds the commit there and records what a copy needs; Lay makes the copy in
// an executor's workspace; Sweep lets go of what no thread needs any more.
//
// A repository of the user is only ever read in a box (package git), and all that is
// written there is one ref per thread. Repositories that are fetched are mirrors in the
// home, which only the server writes.
package branch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
)

// Config makes Branches.
type Config struct {
	// Home is thole's own: mirrors are kept there.
	Home string
	Git  *git.Runner
	// Alive lists the sources of the threads that are there.
	Alive func(context.Context) ([]thole.Source, error)
	// Token is what a person keeps for a server, "" for nothing; nil: nobody keeps any.
	Token func(ctx context.Context, who thole.Owner, host string) (string, error)
	// UserHome has the git configuration of the server's user, default its home directory.
	UserHome string
	// FetchTime bounds the fetch of a URL, default 30 minutes.
	FetchTime time.Duration
	// Step is called after each durable step, for crash tests; an error ends what is done.
	Step func(step string) error
	Log  *slog.Logger
	Now  func() time.Time
}

// Branches is a source.Resolver for thole.SourceBranch, and lays what it resolved.
type Branches struct {
	cfg Config
	// mu guards locks: one per mirror that is in use, held while it is fetched or removed.
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

var _ source.Resolver = (*Branches)(nil)

// New makes Branches.
func New(cfg Config) *Branches {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.FetchTime == 0 {
		cfg.FetchTime = 30 * time.Minute
	}
	if cfg.Step == nil {
		cfg.Step = func(string) error { return nil }
	}
	if cfg.UserHome == "" {
		cfg.UserHome, _ = os.UserHomeDir()
	}
	return &Branches{cfg: cfg, locks: map[string]*sync.Mutex{}}
}

// Mirrors is the directory of a home in which fetched and carried objects are. It alone of
// a home is shown to agents, and read-only.
const Mirrors = "mirrors"

func (b *Branches) dir(elem ...string) string {
	return filepath.Join(append([]string{b.cfg.Home, Mirrors}, elem...)...)
}

// Resolve implements source.Resolver.
func (b *Branches) Resolve(ctx context.Context, id thole.ThreadID, r source.Request) (thole.Source, error) {
	switch {
	case r.Kind != thole.SourceBranch:
		return thole.Source{}, thole.Errorf(thole.CodeInvalid, "source %q is not a branch", r.Kind)
	case !thole.ValidUUID(string(id)):
		return thole.Source{}, thole.Errorf(thole.CodeInvalid, "thread id %q is not a UUID", id)
	case !r.Local:
		return thole.Source{}, thole.Errorf(thole.CodeForbidden, "a repository is read with the files and credentials of the server's own user, which are not yours").
			WithHint("use thole on that machine, or send the files as an upload")
	}
	if err := checkText("repository", r.Repo); err != nil {
		return thole.Source{}, err
	}
	if r.Ref != "" {
		if err := checkText("ref", r.Ref); err != nil {
			return thole.Source{}, err
		}
	}
	dir, err := below(r.Dir)
	if err != nil {
		return thole.Source{}, err
	}
	r.Dir = dir
	name, err := branchName(r.Name, id)
	if err != nil {
		return thole.Source{}, err
	}
	record := record{Thread: id, At: b.cfg.Now().UTC()}
	record.Source = thole.Source{Kind: thole.SourceBranch, Ref: r.Ref, Branch: name, Dir: dir}
	if git.Transport(r.Repo) != "" || strings.Contains(r.Repo, "://") || strings.Contains(r.Repo, "::") {
		err = b.resolveURL(ctx, &record, r)
	} else {
		err = b.resolveLocal(ctx, &record, r)
	}
	return record.Source, err
}

// maxText bounds what a client names.
const maxText = 4096

func checkText(what, s string) error {
	no := func(why string) error {
		return thole.Errorf(thole.CodeInvalid, "%s %q %s", what, s[:min(len(s), 200)], why)
	}
	switch {
	case s == "":
		return thole.Errorf(thole.CodeInvalid, "no %s is named", what).WithHint("name a directory with a git repository, or a URL of one")
	case len(s) > maxText:
		return no("is too long")
	case strings.HasPrefix(s, "-"):
		return no("begins with a dash")
	case strings.ContainsRune(s, 0):
		return no("has a null byte in it")
	case what == "ref" && strings.ContainsFunc(s, unicode.IsControl):
		return no("has control characters in it")
	}
	return nil
}

// below makes a directory below the top of a repository of what a client named.
func below(dir string) (string, error) {
	if dir == "" || dir == "." {
		return "", nil
	}
	if !filepath.IsLocal(dir) || strings.ContainsRune(dir, 0) {
		return "", thole.Errorf(thole.CodeInvalid, "directory %q is not below the top of the repository", dir).WithHint("name it as git does, from the top: web/src")
	}
	return filepath.Clean(dir), nil
}

// branchName is the whole name of a branch. Only what Slug makes is one.
func branchName(slug string, id thole.ThreadID) (string, error) {
	if slug == "" {
		slug = source.Slug("", id)
	}
	odd := func(r rune) bool {
		return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || r == utf8.RuneError
	}
	if strings.HasPrefix(slug, "-") || len(slug) > maxName || strings.ContainsFunc(slug, odd) {
		return "", thole.Errorf(thole.CodeInvalid, "branch name %q has other characters than letters, digits and dashes, or too many", slug[:min(len(slug), maxName)]).WithHint("leave it out: it is made from the message")
	}
	return source.BranchPrefix + slug, nil
}

// maxName bounds a branch's name, in bytes: it is a file's too.
const maxName = 200

// lock holds what has a name, until release.
func (b *Branches) lock(name string) (release func()) {
	b.mu.Lock()
	l := b.locks[name]
	if l == nil {
		l = &sync.Mutex{}
		b.locks[name] = l
	}
	b.mu.Unlock()
	l.Lock()
	return l.Unlock
}
