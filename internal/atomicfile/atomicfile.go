// Package atomicfile replaces files so that a reader, and a crash at any point,
// sees the old content or the new one and never a mix. What Write returned nil
// for is on disk.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path. A file that exists keeps its permissions; a
// new one gets perm, from the moment it exists.
func Write(path string, data []byte, perm fs.FileMode) (err error) {
	if st, err := os.Lstat(path); err == nil {
		if !st.Mode().IsRegular() {
			return &fs.PathError{Op: "replace", Path: path, Err: errors.New("not a regular file")}
		}
		perm = st.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(perm); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes what happened to a directory's names durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
