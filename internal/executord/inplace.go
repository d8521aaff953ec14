package executord

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/unguarded"
)

// files are bubblewrap's arguments for the files that agents work on: the workspace, or the
// directory of a person. Of the repository around such a directory the rest of the work
// tree is read-only, and git directories are writable but for what git takes programs and
// paths from.
func (b *boxes) files(plan bool) (args []string, guards *repository.Guards, err error) {
	bind := "--bind"
	if plan {
		bind = "--ro-bind"
	}
	if b.cfg.Place == nil {
		return []string{bind, b.dirs.Workspace, b.dirs.Workspace}, nil, nil
	}
	place := *b.cfg.Place
	if place.Top != "" && place.Top != place.Dir {
		args = append(args, "--ro-bind", place.Top, place.Top)
	}
	for _, dir := range append(place.Outside(), place.Dir) {
		args = append(args, bind, dir, dir)
	}
	if plan || unguarded.Build {
		return args, nil, nil
	}
	if guards, err = place.Guard(); err != nil {
		return nil, nil, err
	}
	for _, m := range guards.Mounts {
		bind := "--ro-bind"
		if m.Write {
			bind = "--bind"
		}
		args = append(args, bind, m.Path, m.Path)
	}
	return args, guards, nil
}

// hold makes sure that a new box shows what was to be guarded: an agent of another thread
// may have put a link there meanwhile, and bubblewrap have followed it.
func hold(in *box.Box, guards *repository.Guards) error {
	_, err := lost(in, guards)
	return err
}

// lost are the guarded paths that a box does not show any more. The error is about the first
// of them, or says that the box is gone.
func lost(in *box.Box, guards *repository.Guards) (paths []string, err error) {
	if guards == nil {
		return nil, nil
	}
	for _, m := range guards.Mounts {
		seen, failed := in.Stat(m.Path)
		if errors.Is(failed, box.ErrGone) {
			return paths, cmp.Or(err, failed)
		}
		if failed != nil || !os.SameFile(m.Was, seen) {
			paths = append(paths, m.Path)
			err = cmp.Or(err, errors.Join(failed, fmt.Errorf("%s was exchanged meanwhile", m.Path)))
		}
	}
	return paths, err
}

// guarded are the paths that the boxes show read-only.
func (b *boxes) guarded() (paths []string) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.by {
		if w.guards == nil {
			continue
		}
		for _, m := range w.guards.Mounts {
			if !m.Write {
				paths = append(paths, m.Path)
			}
		}
	}
	return paths
}
