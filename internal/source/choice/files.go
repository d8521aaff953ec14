package choice

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/fuzzy"
	"github.com/tholehq/thole/internal/platform/view"
)

const (
	// maxFound bounds what a search for files finds.
	maxFound = 50
	// namesFresh is how long a listing answers the searches of a user who types.
	namesFresh = 5 * time.Second
)

// listing keeps the names of the source that was searched last.
type listing struct {
	mu    sync.Mutex // held while a source is listed
	of    view.SourceChoice
	at    time.Time
	names []string
}

// SearchFiles finds files that a thread on a repository or directory of this machine would
// have, best first.
func (s *Service) SearchFiles(ctx context.Context, of view.SourceChoice, query string) ([]view.FoundFile, error) {
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err // it waited, and nobody types this any more
	}
	if s.names.of != of || time.Since(s.names.at) > namesFresh {
		names, err := s.namesOf(ctx, of)
		if err != nil {
			return nil, err
		}
		s.names.of, s.names.at, s.names.names = of, time.Now(), names
	}
	out := []view.FoundFile{}
	for _, name := range fuzzy.Best(query, s.names.names, func(name string) string { return name }, maxFound) {
		out = append(out, view.FoundFile{Path: name, Kind: "file"})
	}
	return out, nil
}

func (s *Service) namesOf(ctx context.Context, of view.SourceChoice) ([]string, error) {
	switch {
	case of.Kind == thole.SourceBranch && s.cfg.Branch != nil:
		at, err := s.openable(of.Repo)
		if err != nil {
			return nil, err
		}
		return s.cfg.Branch.Names(ctx, at, of.Ref, of.Dirty)
	case of.Kind == thole.SourceHere:
		at, err := s.openable(of.Dir)
		if err != nil {
			return nil, err
		}
		if s.cfg.Branch != nil {
			if names, err := s.cfg.Branch.Names(ctx, at, "", true); err == nil {
				return names, nil
			}
		}
		return s.below(ctx, at) // in no repository that can be read
	}
	return nil, thole.Errorf(thole.CodeInvalid, "source %s has no files to search before a thread begins", of.Kind).WithHint("name a repository or a directory of this machine")
}

// below lists files below a directory, without those of repositories' own and those that
// Folders hides; no link is followed.
func (s *Service) below(ctx context.Context, top string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && path == top:
			return unreadable(top, err)
		case err != nil:
			return nil //nolint:nilerr // what may not be read is not offered
		case e.IsDir() && path != top && (e.Name() == ".git" || s.hidden(path)):
			return fs.SkipDir
		case e.IsDir():
			return nil
		case len(out) == maxNames:
			return errEnough
		}
		out = append(out, strings.TrimPrefix(path, top+"/"))
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

var errEnough = errors.New("enough names")
