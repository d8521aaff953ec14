package side

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Link implements Side. The CLIs learn from variables where their data is; the
// links are for those who start one by hand. A real directory in a link's place
// is moved next to its target first.
func (l *Local) Link(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Home == "" {
		return thole.Errorf(thole.CodeUnsupported, "this side has no home directory to link in")
	}
	root, err := l.root()
	if err != nil {
		return err
	}
	defer root.Close()
	home, err := beneath.Trusted(l.cfg.Home)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "open the home: %w", err)
	}
	defer home.Close()
	for _, pair := range workspace.DataLinks() {
		if err := l.link(ctx, root, home, pair[0], pair[1]); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "link ~/%s: %w", pair[0], err)
		}
	}
	return nil
}

func (l *Local) link(ctx context.Context, root, home *beneath.Dir, link, target string) error {
	if _, err := root.Claim(target, 0o700); err != nil {
		return refused(target, err)
	}
	dir, name, err := root.Parent(target, true)
	if err != nil {
		return refused(target, err)
	}
	defer dir.Close()
	abs := l.real(target)
	if unguarded.Build { // as is done where names are trusted
		at := filepath.Join(l.cfg.Home, link)
		return errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.RemoveAll(at), os.Symlink(abs, at))
	}
	// The agent's home is as hostile as its workspace, and we see more than it does.
	if above := parentOf(link); above != "" {
		if _, err := home.Claim(above, 0o700); err != nil {
			return err
		}
	}
	at, own, err := home.Parent(link, true)
	if err != nil {
		return err
	}
	defer at.Close()
	if have, err := at.Readlink(own); err == nil && have == abs {
		return nil
	}
	if st, err := at.Lstat(own); err == nil && st.Kind == beneath.Folder {
		if err := migrate(ctx, at, own, dir, name); err != nil {
			return fmt.Errorf("move what is there: %w", err)
		}
	} else if err := at.Remove(own); err != nil {
		return err
	}
	return at.Symlink(abs, own)
}

// migrate copies a real directory next to its target, because the two may lie on
// different file systems, and removes it. Nothing runs yet that writes in it, so its
// databases are whole with the logs next to them. What cannot be copied stays in the
// home, out of the way: an agent must not stop its thread by it.
func migrate(ctx context.Context, at *beneath.Dir, own string, dir *beneath.Dir, name string) error {
	to := name + ".migrated"
	for n := 2; ; n++ {
		if _, err := dir.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = fmt.Sprintf("%s.migrated-%d", name, n)
	}
	half := to + ".part" // of a copy that broke off, if it is there
	if err := dir.RemoveAll(half); err != nil {
		return err
	}
	err := copyFolder(ctx, at, own, dir, half, 0)
	if err == nil {
		err = dir.Rename(half, to)
	}
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		_, err = at.MoveAside(own)
		return errors.Join(err, dir.RemoveAll(half))
	}
	return at.RemoveAll(own)
}

// copyFolder copies directories, regular files and links, as they are.
func copyFolder(ctx context.Context, at *beneath.Dir, name string, dir *beneath.Dir, as string, depth int) error {
	if depth > workspace.MaxNesting {
		return fmt.Errorf("directories nest deeper than %d levels", workspace.MaxNesting)
	}
	from, _, err := at.SubLent(name) // what was lent is removed afterwards
	if err != nil {
		return err
	}
	defer from.Close()
	if err := dir.Mkdir(as, 0o700); err != nil {
		return err
	}
	to, err := dir.Sub(as)
	if err != nil {
		return err
	}
	defer to.Close()
	names, err := from.Names()
	for _, name := range names {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		var st beneath.Stat
		if st, err = from.Lstat(name); err != nil {
			return err
		}
		switch st.Kind {
		case beneath.Folder:
			err = copyFolder(ctx, from, name, to, name, depth+1)
		case beneath.Link:
			var says string
			if says, err = from.Readlink(name); err == nil {
				err = to.Symlink(says, name)
			}
		case beneath.File:
			err = from.CopyFile(ctx, name, to, name)
		}
	}
	return err
}

// Validate implements Side.
func (l *Local) Validate(_ context.Context, req workspace.ValidateRequest) error {
	root, err := l.root()
	if err != nil {
		return err
	}
	defer root.Close()
	var errs []error
	for _, p := range req.RequiredPaths {
		rel, err := workspace.Relative(p)
		if err != nil {
			return err
		}
		if rel == "" || !l.has(rel) {
			continue
		}
		if err := root.OpenUp(parentOf(rel)); err != nil {
			return err
		}
		dir, name, err := root.Parent(rel, false)
		if err == nil {
			_, err = dir.Lstat(name)
			dir.Close()
		}
		if err != nil {
			errs = append(errs, thole.Errorf(thole.CodeInvalid, "required path %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}
