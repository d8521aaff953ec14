// Package snapshot copies an agent CLI's data directory so that the copy is
// consistent while the CLI lives: SQLite databases are copied through SQLite,
// with what still sits in their write-ahead logs, because a copy of the main file
// alone loses the newest sessions. Everything else is copied as files.
//
// It refuses to follow symbolic links and to copy sockets, pipes and devices.
package snapshot

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Copy copies the tree below src to dst, which must not exist or be empty. Paths
// (relative, slashes) that skip accepts are left out with all below them; nil
// skips nothing. Files that vanish during the copy are left out.
func Copy(ctx context.Context, src, dst string, skip func(rel string) bool) error {
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != src {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if rel != "." && skip != nil && skip(filepath.ToSlash(rel)) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		err = copyEntry(ctx, path, filepath.Join(dst, rel), d)
		if errors.Is(err, fs.ErrNotExist) && path != src {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", src, err)
	}
	return nil
}

func copyEntry(ctx context.Context, from, to string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		return os.MkdirAll(to, info.Mode().Perm()|0o700)
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !d.Type().IsRegular():
		return nil
	case sidecar(from):
		return nil
	case isDatabase(from):
		return copyDatabase(ctx, from, to, info.Mode().Perm())
	}
	return copyFile(from, to, info.Mode().Perm())
}

// sidecar reports a write-ahead log, its index or a rollback journal of a
// database next to it: the copy of the database holds what they hold.
func sidecar(path string) bool {
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		if main, ok := strings.CutSuffix(path, end); ok && isDatabase(main) {
			return true
		}
	}
	return false
}

func isDatabase(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, _ := io.ReadFull(f, head)
	if n == 0 { // a new database may live in its log alone
		_, err := os.Stat(path + "-wal")
		return err == nil
	}
	return string(head[:n]) == magic
}

func copyDatabase(ctx context.Context, from, to string, mode fs.FileMode) error {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: from}).EscapedPath()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return fmt.Errorf("copy database %s: %w", filepath.Base(from), err)
	}
	return os.Chmod(to, mode)
}

func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
