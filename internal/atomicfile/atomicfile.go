// Package atomicfile replaces files whole: after a crash or a power loss a reader
// finds the old content or the new, never a mix, and what Write acknowledged is
// there. The new content is written next to the file, synced, renamed over it, and
// the directory is synced. Symbolic links are followed, so that a linked
// configuration stays linked.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces path with data. An existing file keeps its mode; a new one gets
// perm, whatever the umask.
func Write(path string, data []byte, perm fs.FileMode) error {
	return WriteFunc(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc is Write for content that is produced piecemeal. When fill fails the
// file is untouched.
func WriteFunc(path string, perm fs.FileMode, fill func(io.Writer) error) error {
	target, mode, err := resolve(path, perm)
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := replace(target, mode, fill); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

// resolve follows links to the file itself and finds the mode it shall have.
func resolve(path string, perm fs.FileMode) (string, fs.FileMode, error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", 0, errors.New("is a link to nothing")
		}
		return path, perm.Perm(), nil
	}
	if err != nil {
		return "", 0, err
	}
	fi, err := os.Stat(target)
	if err != nil {
		return "", 0, err
	}
	if !fi.Mode().IsRegular() {
		return "", 0, errors.New("is not a regular file")
	}
	return target, fi.Mode().Perm(), nil
}

func replace(target string, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	dir := filepath.Dir(target)
	f, err := os.CreateTemp(dir, "."+filepath.Base(target)+".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), target); err != nil {
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in dir durable: creations, renames and removals.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
