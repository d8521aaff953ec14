//go:build unix

// Package beneath works on a directory tree by descriptor: each step opens one
// name in an open directory and refuses a symbolic link, so that no link, laid
// earlier or swapped in between, leads anywhere else. Names are single
// components; paths are walked from an open directory, never handed to the
// kernel whole.
package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
	"golang.org/x/sys/unix"
)

// Dir is an open directory. It is safe for concurrent use.
type Dir struct {
	f     *os.File
	graft *graft // nil but in a directory that Graft made
}

// Open opens a directory that the caller trusts to be where its path says.
func Open(path string) (*Dir, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &Dir{f: f}, nil
}

// Close releases the descriptor.
func (d *Dir) Close() error {
	if d.graft != nil {
		return errors.Join(d.f.Close(), d.graft.to.Close())
	}
	return d.f.Close()
}

func (d *Dir) fd() int { return int(d.f.Fd()) }

// Kind is what a name is.
type Kind byte

// The kinds that matter; everything else is Other.
const (
	File   Kind = 'f'
	Folder Kind = 'd'
	Link   Kind = 'l'
	Other  Kind = '?'
)

// Stat is what the kernel says about a name, links not followed.
type Stat struct {
	Kind  Kind
	Mode  uint32 // permission and sticky bits
	Size  int64
	Mtime int64 // nanoseconds
	Ctime int64
	Inode uint64
	Links uint64 // names that the same file has
}

// ModeBits are the mode bits that are kept. Set-id bits are not: what they would
// mean depends on who owns the file, and owners are not kept either.
const ModeBits = 0o1777

func statOf(st *unix.Stat_t) Stat {
	//nolint:unconvert // mode and count of links have 16 bits on macOS
	s := Stat{Kind: Other, Mode: uint32(st.Mode) & ModeBits, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Inode: st.Ino, Links: uint64(st.Nlink)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.Kind = File
	case unix.S_IFDIR:
		s.Kind = Folder
	case unix.S_IFLNK:
		s.Kind = Link
	}
	return s
}

func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Sub opens a directory inside d.
func (d *Dir) Sub(name string) (*Dir, error) {
	at, real := d.at(name)
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(at, real, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fail("open", name, err)
	}
	return &Dir{f: os.NewFile(uintptr(fd), name)}, nil
}

// Names lists the directory, in no order.
func (d *Dir) Names() ([]string, error) {
	if _, err := d.f.Seek(0, 0); err != nil {
		return nil, err
	}
	names, err := d.f.Readdirnames(-1)
	if d.graft != nil {
		return d.graft.names(names, err)
	}
	return names, err
}

// Lstat describes a name.
func (d *Dir) Lstat(name string) (Stat, error) {
	at, real := d.at(name)
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(at, real, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return statOf(&st), fail("lstat", name, err)
}

// StatFile describes an open file.
func StatFile(f *os.File) (Stat, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(int(f.Fd()), &st) })
	return statOf(&st), fail("stat", f.Name(), err)
}

// errKind says in words what fs.ErrInvalid says of something that is no file.
var errKind = fmt.Errorf("not a regular file: %w", fs.ErrInvalid)

// Open opens a regular file for reading. Pipes and devices are refused without
// waiting for them.
func (d *Dir) Open(name string) (*os.File, error) {
	f, err := d.openat(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := StatFile(f); err != nil || st.Kind != File {
		f.Close()
		return nil, fail("open", name, errors.Join(err, errKind))
	}
	return f, nil
}

// Create makes a new file for writing; one that is there is an error.
func (d *Dir) Create(name string, perm uint32) (*os.File, error) {
	return d.openat(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, perm)
}

// OpenWrite opens a regular file that is there for writing.
func (d *Dir) OpenWrite(name string) (*os.File, error) {
	f, err := d.openat(name, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := StatFile(f); err != nil || st.Kind != File {
		f.Close()
		return nil, fail("open", name, errors.Join(err, errKind))
	}
	return f, nil
}

func (d *Dir) openat(name string, flags int, perm uint32) (*os.File, error) {
	at, real := d.at(name)
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(at, real, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
		return err
	})
	if err != nil {
		return nil, fail("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Mkdir makes a directory.
func (d *Dir) Mkdir(name string, perm uint32) error {
	at, real := d.at(name)
	return fail("mkdir", name, retry(func() error { return unix.Mkdirat(at, real, perm) }))
}

// Symlink makes a link that says target.
func (d *Dir) Symlink(target, name string) error {
	at, real := d.at(name)
	return fail("symlink", name, retry(func() error { return unix.Symlinkat(target, at, real) }))
}

// HardLink gives a file of another directory a second name here. A symbolic link
// is not followed.
func (d *Dir) HardLink(from *Dir, old, name string) error {
	at, real := d.at(name)
	was, had := from.at(old)
	return fail("link", name, retry(func() error { return unix.Linkat(was, had, at, real, 0) }))
}

// Readlink returns what a link says.
func (d *Dir) Readlink(name string) (string, error) {
	at, real := d.at(name)
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(at, real, buf)
		if err != nil {
			return "", fail("readlink", name, err)
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// Rename moves a name inside d over another one.
func (d *Dir) Rename(from, to string) error { return d.Take(d, from, to) }

// Take moves a name of another directory here, over what has the name.
func (d *Dir) Take(from *Dir, old, name string) error {
	at, real := d.at(name)
	was, had := from.at(old)
	return fail("rename", name, retry(func() error { return unix.Renameat(was, had, at, real) }))
}

// Remove deletes a file, a link or an empty directory; what is not there is no
// error.
func (d *Dir) Remove(name string) error {
	at, real := d.at(name)
	err := retry(func() error { return unix.Unlinkat(at, real, 0) })
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = retry(func() error { return unix.Unlinkat(at, real, unix.AT_REMOVEDIR) })
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fail("remove", name, err)
}

// RemoveAll deletes a name and everything below it. A graft itself stays.
func (d *Dir) RemoveAll(name string) error {
	st, err := d.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Kind == Folder {
		if st.Mode&0o700 != 0o700 {
			if err := d.Chmod(name, 0o700); err != nil {
				return err
			}
		}
		sub, err := d.Sub(name)
		if err != nil {
			return err
		}
		err = sub.Clear()
		sub.Close()
		if err != nil || d.grafted(name) {
			return err
		}
	}
	return d.Remove(name)
}

// Clear deletes everything in d.
func (d *Dir) Clear() error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// Chmod sets the mode of a directory or a regular file. Holding it is what keeps
// it from following a link.
func (d *Dir) Chmod(name string, mode uint32) error {
	h, err := d.hold(name)
	if err != nil {
		return err
	}
	defer h.close()
	if h.stat.Kind != File && h.stat.Kind != Folder {
		return fail("chmod", name, fs.ErrInvalid)
	}
	if d.grafted(name) {
		mode |= 0o700 // otherwise it could not be found any more
	}
	return h.chmod(mode)
}

func (d *Dir) dup() (*Dir, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.FcntlInt(d.f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &Dir{f: os.NewFile(uintptr(fd), ".")}
	if d.graft != nil {
		to, err := d.graft.to.dup()
		if err != nil {
			return nil, errors.Join(err, out.Close())
		}
		out.graft = &graft{d.graft.name, d.graft.own, to}
	}
	return out, nil
}

// Chtimes sets the modification time, of a link its own.
func (d *Dir) Chtimes(name string, mtime int64) error {
	at, real := d.at(name)
	ts := []unix.Timespec{unix.NsecToTimespec(mtime), unix.NsecToTimespec(mtime)}
	return fail("chtimes", name, retry(func() error { return unix.UtimesNanoAt(at, real, ts, unix.AT_SYMLINK_NOFOLLOW) }))
}

// CheckPath reports whether a path is relative, clean and made of names.
func CheckPath(path string) error {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 || len(name) > 255 {
			return thole.Errorf(thole.CodeInvalid, "path %q is not a clean relative path", path)
		}
	}
	return nil
}

// Parent opens the directory that holds path and returns the last name. With
// create, directories that are missing are made. The caller closes the result.
func (d *Dir) Parent(path string, create bool) (*Dir, string, error) {
	if err := CheckPath(path); err != nil {
		return nil, "", err
	}
	at, err := d.dup()
	if err != nil {
		return nil, "", err
	}
	for {
		name, rest, more := strings.Cut(path, "/")
		if !more {
			return at, name, nil
		}
		next, err := at.Sub(name)
		if create && errors.Is(err, fs.ErrNotExist) {
			if err = at.Mkdir(name, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
				next, err = at.Sub(name)
			}
		}
		at.Close()
		if err != nil {
			return nil, "", fmt.Errorf("open %q: %w", path, err)
		}
		at, path = next, rest
	}
}

// SetTime sets the modification time of an open file.
func SetTime(f *os.File, mtime int64) error {
	return fail("chtimes", f.Name(), setTime(int(f.Fd()), mtime))
}
