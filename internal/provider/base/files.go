package base

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tholehq/thole/internal/provider"
)

// maxFile bounds what is read of one file that a CLI left.
const maxFile = 4 << 20

// Files is a directory that agents write in, as the server uses it. The server sees
// more than an agent does, so nothing in the directory leads out of it, and only
// regular files are read.
type Files struct{ *os.Root }

// OpenFiles opens a directory of a session and makes it if need be. What an agent put
// in its place is removed.
func OpenFiles(cfg provider.SessionConfig, dir string) (*Files, error) {
	top, rel := dir, "."
	for _, own := range []string{filepath.Dir(cfg.Data), filepath.Dir(cfg.Auth)} { // these are not the agent's to replace
		if r, err := filepath.Rel(own, dir); filepath.IsAbs(own) && err == nil && filepath.IsLocal(r) {
			top, rel = own, r
			break
		}
	}
	if err := os.MkdirAll(top, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if info, err := root.Lstat(rel); err == nil && !info.IsDir() {
		if err := root.Remove(rel); err != nil {
			return nil, err
		}
	}
	if err := root.MkdirAll(rel, 0o700); err != nil {
		return nil, err
	}
	sub, err := root.OpenRoot(rel)
	if err != nil {
		return nil, err
	}
	return &Files{sub}, nil
}

// Read returns a regular file that is not larger than it may be.
func (f *Files) Read(name string) ([]byte, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, maxFile)
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// Write puts a new file in the place of whatever is there.
func (f *Files) Write(name string, data []byte) error {
	if err := f.RemoveAll(name); err != nil {
		return err
	}
	file, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
