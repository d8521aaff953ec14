package powerloss

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Disk is the directory the work lives in and the record of what it did there.
type Disk struct {
	Dir string
	// VFS goes into store.Config.
	VFS string

	mu    sync.Mutex // guards what follows
	ops   []op
	start int // cuts are tried from here on

	full, broken atomic.Bool
}

// Full makes every write of SQLite fail as on a full disk, until it is unsaid.
func (d *Disk) Full(full bool) { d.full.Store(full) }

// Broken makes every sync of SQLite fail after it may have done its work.
func (d *Disk) Broken(broken bool) { d.broken.Store(broken) }

// NewDisk is a disk to inject errors into; Enumerate makes its own.
func NewDisk(t testing.TB) *Disk {
	d := newDisk(t.TempDir())
	t.Cleanup(d.release)
	return d
}

func newDisk(dir string) *Disk {
	d := &Disk{Dir: dir, VFS: registerVFS()}
	disks.Lock()
	defer disks.Unlock()
	disks.byDir[dir] = d
	return d
}

func (d *Disk) release() {
	disks.Lock()
	defer disks.Unlock()
	delete(disks.byDir, d.Dir)
}

var disks = struct {
	sync.Mutex
	byDir map[string]*Disk
}{byDir: map[string]*Disk{}}

// diskOf finds the disk that holds path.
func diskOf(path string) (*Disk, string) {
	disks.Lock()
	defer disks.Unlock()
	for dir, d := range disks.byDir {
		if rel, ok := strings.CutPrefix(path, dir+string(filepath.Separator)); ok {
			return d, rel
		}
	}
	return nil, ""
}

func (d *Disk) add(o op) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, o)
}

func (d *Disk) rel(path string) string {
	rel, err := filepath.Rel(d.Dir, path)
	if err != nil {
		return path
	}
	return rel
}

// Start says that the power holds until here, to leave out a set-up that is not
// under test.
func (d *Disk) Start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start = len(d.ops)
}

// Ack notes that the caller of the work may rely on what from now on.
func (d *Disk) Ack(what string) { d.add(op{kind: opAck, what: what}) }

// File is a recorded file, open for writing.
type File struct {
	*os.File
	disk *Disk
	path string
	off  int64
}

// Create makes and opens a file of mode perm that must not exist.
func (d *Disk) Create(path string, perm os.FileMode) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	d.add(op{kind: opCreate, path: d.rel(path)})
	return &File{File: f, disk: d, path: d.rel(path)}, nil
}

// Write appends to what was written through this File.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.disk.add(op{kind: opWrite, path: f.path, off: f.off, data: append([]byte(nil), b[:n]...)})
	f.off += int64(n)
	return n, err
}

// Sync makes the content durable.
func (f *File) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.disk.add(op{kind: opSync, path: f.path})
	}
	return err
}

// Rename moves a file; SyncDir makes that durable.
func (d *Disk) Rename(from, to string) error {
	err := os.Rename(from, to)
	if err == nil {
		d.add(op{kind: opRename, path: d.rel(from), to: d.rel(to)})
	}
	return err
}

// Remove deletes a file; SyncDir makes that durable.
func (d *Disk) Remove(path string) error {
	err := os.Remove(path)
	if err == nil {
		d.add(op{kind: opRemove, path: d.rel(path)})
	}
	return err
}

// SyncDir makes the names in a directory durable.
func (d *Disk) SyncDir(dir string) error {
	d.add(op{kind: opSyncDir, path: d.rel(dir)})
	return nil
}
