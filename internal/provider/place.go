package provider

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Place writes a grant's files into dir, a SessionConfig.Auth, whatever is in its place,
// and leaves nothing else there: what an earlier session was given or left is
// nobody's login.
func (g Grant) Place(dir string) error {
	at, err := claimed(dir)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "place credentials: %w", err)
	}
	defer at.Close()
	for name, data := range g.Files {
		if name != filepath.Base(name) || name == "." || name == ".." {
			return thole.Errorf(thole.CodeInvalid, "credential file name %q is not a plain name", name)
		}
		if err := put(at, name, data); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "place credentials: %w", err)
		}
	}
	there, err := at.Names()
	for _, name := range there {
		if _, given := g.Files[name]; !given && err == nil {
			err = at.RemoveAll(name)
		}
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "clear old credentials: %w", err)
	}
	return nil
}

// claimed makes and opens a directory below one that agents cannot replace.
func claimed(dir string) (*beneath.Dir, error) {
	above, name := filepath.Split(filepath.Clean(dir))
	if err := os.MkdirAll(above, 0o700); err != nil {
		return nil, err
	}
	parent, err := beneath.Trusted(above)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if _, err := parent.Claim(name, 0o700); err != nil {
		return nil, err
	}
	return parent.Sub(name)
}

// put writes a file into a directory over whatever is there, a link, a pipe or a
// folder too.
func put(dir *beneath.Dir, name string, data []byte) error {
	fresh := name + ".new"
	if err := dir.RemoveAll(fresh); err != nil {
		return err
	}
	f, err := dir.Create(fresh, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if st, err := dir.Lstat(name); err == nil && st.Kind == beneath.Folder {
		if err := dir.RemoveAll(name); err != nil {
			return err
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return dir.Rename(fresh, name)
}
