package artifact

import (
	"io"
	"os"
	"syscall"

	"github.com/tholehq/thole/internal/atomicfile"
)

// Disk is the part of a file system that decides what survives a power cut.
type Disk interface {
	// Create makes a new file; one of that name must not exist.
	Create(path string, perm os.FileMode) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

type osDisk struct{}

func (osDisk) Create(path string, perm os.FileMode) (File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, perm)
}
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Remove(path string) error     { return os.Remove(path) }
func (osDisk) SyncDir(dir string) error     { return atomicfile.SyncDir(dir) }
