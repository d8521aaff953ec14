package choice

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/view"
)

// maxFolders bounds a listing, maxNames how many names of a directory are looked at.
const (
	maxFolders = 1000
	maxNames   = 20_000
)

// kernelDirs hold no files of people.
var kernelDirs = []string{"/proc", "/sys", "/dev", "/run", "/var/run"}

// Folders lists the directories in a directory of this machine; "" is the user's home. A
// link is listed as the directory that it leads to, or not at all.
func (s *Service) Folders(_ context.Context, path string) (view.Folders, error) {
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = "/"
		}
		path = home
	}
	at, err := s.openable(path)
	if err != nil {
		return view.Folders{}, err
	}
	out := view.Folders{Folder: view.Folder{Name: filepath.Base(at), Path: at, Repository: isRepository(at)}, Items: []view.Folder{}}
	if up := filepath.Dir(at); up != at {
		out.Parent = up
	}
	dir, err := os.Open(at)
	if err != nil {
		return view.Folders{}, unreadable(at, err)
	}
	defer dir.Close()
	names, err := dir.ReadDir(maxNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return view.Folders{}, unreadable(at, err)
	}
	out.Truncated = len(names) == maxNames
	slices.SortFunc(names, func(a, b fs.DirEntry) int {
		return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name()))
	})
	for _, e := range names {
		if !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		real, err := s.openable(filepath.Join(at, e.Name()))
		if err != nil {
			continue // not for this list
		}
		if len(out.Items) == maxFolders {
			out.Truncated = true
			break
		}
		out.Items = append(out.Items, view.Folder{Name: e.Name(), Path: real, Repository: isRepository(real)})
	}
	return out, nil
}

// openable is the real path of a directory that may be shown.
func (s *Service) openable(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", thole.Errorf(thole.CodeInvalid, "%q is not an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", unreadable(path, err)
	}
	for _, p := range []string{filepath.Clean(path), real} {
		if s.hidden(p) {
			return "", thole.Errorf(thole.CodeForbidden, "%s is not shown: keys or thole's own files are there", path)
		}
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", unreadable(path, err)
	}
	if !info.IsDir() {
		return "", thole.Errorf(thole.CodeInvalid, "%s is not a directory", path)
	}
	return real, nil
}

func (s *Service) hidden(path string) bool {
	home := s.cfg.Home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	for _, dir := range append(slices.Clone(kernelDirs), s.cfg.Home, home) {
		if dir != "" && (path == dir || strings.HasPrefix(path, dir+"/")) {
			return true
		}
	}
	for name := range strings.SplitSeq(path, "/") {
		if s.cfg.KeyDir != nil && s.cfg.KeyDir(name) {
			return true
		}
	}
	return false
}

func unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return thole.Errorf(thole.CodeNotFound, "there is no directory %s", path)
	case errors.Is(err, fs.ErrPermission):
		return thole.Errorf(thole.CodeForbidden, "%s may not be read", path)
	}
	return thole.Errorf(thole.CodeInvalid, "read %s: %w", path, err)
}

// isRepository reports whether a directory looks like the top of a repository: git is not
// asked, because that costs a box for each.
func isRepository(dir string) bool {
	there := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }
	return there(".git") || there("HEAD") && there("objects") && there("refs")
}
