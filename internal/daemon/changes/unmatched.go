package changes

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/shelf"
)

// unmatched refuses a path in which nothing changed because neither the thread's files nor any
// of its changes have it. Where its files are not at hand that is not known, and nothing is said.
func (s *Service) unmatched(ctx context.Context, th fold.Thread, dir string, q httpapi.ChangesQuery) error {
	if q.Path == "" || dir == "" || !absent(dir, q.Path) {
		return nil
	}
	all, err := s.cfg.Shelf.Diff(ctx, th, dir, shelf.Range{Path: q.Path})
	if err != nil || all.Total > 0 {
		return err
	}
	for _, turn := range all.Turns { // a file may come and go again between turns
		if !turn.Changed {
			continue
		}
		if one, err := s.cfg.Shelf.Diff(ctx, th, dir, shelf.Range{Turn: turn.Number, Path: q.Path}); err != nil || one.Total > 0 {
			return err
		}
	}
	return thole.Errorf(thole.CodeNotFound, "the thread has no file or directory %q, and had none", q.Path).
		WithHint("paths begin at the top of its files; thole thread diff %s --name-only lists those that changed", th.ID)
}

// absent reports that a directory certainly has no such path. Links on the way are not
// followed out of it.
func absent(dir, path string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Lstat(filepath.Clean(path))
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// counted counts what is written.
type counted struct {
	io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}
