package side

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	for _, pair := range workspace.DataLinks() {
		if err := l.link(ctx, root, filepath.Join(l.cfg.Home, pair[0]), pair[1]); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "link ~/%s: %w", pair[0], err)
		}
	}
	return nil
}

func (l *Local) link(ctx context.Context, root *beneath.Dir, link, target string) error {
	if _, err := root.Claim(target, 0o700); err != nil {
		return refused(target, err)
	}
	dir, name, err := root.Parent(target, true)
	if err != nil {
		return refused(target, err)
	}
	defer dir.Close()
	abs := filepath.Join(l.cfg.Dir, filepath.FromSlash(target))
	if have, err := os.Readlink(link); err == nil && have == abs {
		return nil
	}
	if st, err := os.Lstat(link); err == nil && st.IsDir() {
		if err := l.migrate(ctx, dir, name, link); err != nil {
			return fmt.Errorf("move what is there: %w", err)
		}
	} else if err == nil {
		if err := os.Remove(link); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	return os.Symlink(abs, link)
}

// migrate copies a real directory next to its target, through SQLite where there
// are databases, and removes it: the two may lie on different file systems. A
// copy that broke off is made again.
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
		if err := dir.Rename(half, to); err != nil {
			return err
		}
		return os.RemoveAll(link)
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
