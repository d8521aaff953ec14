package side

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/snapshot"
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
		return thole.Errorf(thole.CodeUnavailable, "open home: %w", err)
	}
	defer home.Close()
	for _, pair := range workspace.DataLinks() {
		if err := l.link(ctx, root, home, pair[0], pair[1]); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "link ~/%s: %w", pair[0], err)
		}
	}
	return nil
}

// link makes one link. What an agent put in the way, in the workspace or on the way
// to the link, is moved aside and never followed.
func (l *Local) link(ctx context.Context, root, home *beneath.Dir, link, target string) error {
	if _, err := root.Claim(target, 0o700); err != nil {
		return refused(target, err)
	}
	dir, name, err := root.Parent(target, true)
	if err != nil {
		return refused(target, err)
	}
	defer dir.Close()
	if parent := parentOf(link); parent != "" {
		if _, err := home.Claim(parent, 0o700); err != nil {
			return err
		}
	}
	in, as, err := home.Parent(link, false)
	if err != nil {
		return err
	}
	defer in.Close()
	abs := filepath.Join(l.cfg.Dir, filepath.FromSlash(target))
	if have, err := in.Readlink(as); err == nil && have == abs {
		return nil
	}
	if st, err := in.Lstat(as); err == nil && st.Kind == beneath.Folder {
		if err := l.migrate(ctx, dir, name, filepath.Join(in.Path(), as)); err != nil {
			return fmt.Errorf("move what is there: %w", err)
		}
	}
	if err := in.RemoveAll(as); err != nil {
		return err
	}
	return in.Symlink(abs, as)
}

// migrate copies a real directory next to its target, through SQLite where there
// are databases: the two may lie on different file systems. A copy that broke off is
// made again.
func (l *Local) migrate(ctx context.Context, dir *beneath.Dir, name, link string) error {
	for n := 1; ; n++ {
		to := name + ".migrated"
		if n > 1 {
			to = fmt.Sprintf("%s-%d", to, n)
		}
		if _, err := dir.Lstat(to); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		half := to + ".part"
		if err := dir.RemoveAll(half); err != nil {
			return err
		}
		if err := dir.Mkdir(half, 0o700); err != nil {
			return err
		}
		if err := snapshot.Copy(ctx, link, filepath.Join(dir.Path(), half), nil); err != nil {
			return err
		}
		return dir.Rename(half, to)
	}
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
		if rel == "" {
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
