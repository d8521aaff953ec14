package beneath

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/sys/unix"
)

// held is a name held fast: whatever is put in its place meanwhile, this stays the
// thing that was looked at. It needs no permission on the thing itself.
type held struct {
	fd   int
	name string
	stat Stat
	bits uint32 // all of the mode, set-id bits too
}

func (d *Dir) hold(name string) (*held, error) {
	at, real := d.at(name)
	h := &held{name: name}
	err := retry(func() (err error) {
		h.fd, err = unix.Openat(at, real, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fail("open", name, err)
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(h.fd, &st) }); err != nil {
		h.close()
		return nil, fail("stat", name, err)
	}
	h.stat, h.bits = statOf(&st), st.Mode&0o7777
	return h, nil
}

func (h *held) close() { unix.Close(h.fd) }

// path leads to the thing itself and through no link: links are not chmodded or
// opened this way.
func (h *held) path() string { return "/proc/self/fd/" + strconv.Itoa(h.fd) }

// chmod goes by the descriptor: fchmodat cannot refuse a link before Linux 6.6,
// and what has no read permission cannot be opened otherwise.
func (h *held) chmod(mode uint32) error {
	return fail("chmod", h.name, retry(func() error { return unix.Chmod(h.path(), mode) }))
}

// reopen opens the thing for reading.
func (h *held) reopen(flags int) (*os.File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(h.path(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
		return err
	})
	if err != nil {
		return nil, fail("open", h.name, err)
	}
	return os.NewFile(uintptr(fd), h.name), nil
}

// setTime is futimens, which the kernel knows as utimensat without a name.
func setTime(fd int, mtime int64) error {
	ts := [2]unix.Timespec{unix.NsecToTimespec(mtime), unix.NsecToTimespec(mtime)}
	return retry(func() error {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

// Flush makes everything written in the directory's file system durable, and in that of
// its graft.
func (d *Dir) Flush() error {
	err := fail("sync", d.f.Name(), unix.Syncfs(d.fd()))
	if d.graft != nil {
		err = errors.Join(err, d.graft.to.Flush())
	}
	return err
}

// Path names the directory for calls that take paths. It holds while d is open,
// wherever the directory is moved.
func (d *Dir) Path() string { return "/proc/self/fd/" + strconv.Itoa(d.fd()) }

// Guard asks the kernel to vouch that nobody writes a file that is open for
// reading: it succeeds only while no descriptor or mapping can. The returned
// function ends it and reports whether that held all the time. A process that opens the
// file for writing meanwhile waits until then.
func Guard(f *os.File) (end func() bool, ok bool) {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return nil, false
	}
	return func() bool {
		kind, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		return err == nil && kind == unix.F_RDLCK
	}, true
}

// ExtentsOf are the stretches of a file that have bytes, nil if it has no hole worth
// keeping.
func ExtentsOf(f *os.File, size int64) (Extents, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return nil, fail("stat", f.Name(), err)
	}
	if size < minSparse || st.Blocks*512 > size-minHole {
		return nil, nil
	}
	x := Extents{}
	for at := int64(0); at < size; {
		from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && from >= size {
			break // a hole up to the end
		}
		if err != nil {
			return nil, nil //nolint:nilerr // the file system knows none: the file is read whole
		}
		to, err := unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE)
		if err != nil {
			return nil, fail("seek", f.Name(), err)
		}
		at = min(to, size)
		if x = append(x, Extent{from, at - from}); len(x) >= 4*MaxExtents {
			x = x.join()
		}
	}
	_, err := unix.Seek(int(f.Fd()), 0, 0)
	if x = x.join(); len(x) == 1 && x[0] == (Extent{0, size}) {
		x = nil
	}
	return x, fail("seek", f.Name(), err)
}

const (
	minSparse = 64 << 10 // smaller files are read whole
	minHole   = 4 << 10
)

const userAttr = "user."

// AttrsOf are the extended attributes of the user's that are kept of an open file or
// directory, in order of names, and how many are not.
func AttrsOf(f *os.File) (kept []Attr, left int) {
	var names [4 << 10]byte
	n, err := unix.Flistxattr(int(f.Fd()), names[:])
	if n == 0 || err != nil && !errors.Is(err, unix.ERANGE) {
		return nil, 0 // it has none, or the file system knows none
	}
	if err != nil {
		return nil, 1 // more names than are kept
	}
	list := slices.DeleteFunc(strings.Split(string(names[:n]), "\x00"), func(s string) bool { return !strings.HasPrefix(s, userAttr) })
	slices.Sort(list)
	room := maxAttrBytes
	for _, name := range list {
		var value [maxAttrBytes]byte
		n, err := unix.Fgetxattr(int(f.Fd()), name, value[:])
		short := strings.TrimPrefix(name, userAttr)
		if err != nil || n+len(short) > room || len(kept) == maxAttrs || !utf8.ValidString(short) {
			left++
			continue
		}
		room -= n + len(short)
		kept = append(kept, Attr{short, slices.Clone(value[:n])})
	}
	return kept, left
}

// SetAttrs gives an open file or directory its extended attributes. A file system
// that has no room for one, or knows none, does without.
func SetAttrs(f *os.File, attrs []Attr) error {
	for _, a := range attrs {
		err := unix.Fsetxattr(int(f.Fd()), userAttr+a.Name, a.Value, 0)
		switch {
		case err == nil, errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.E2BIG), errors.Is(err, unix.ERANGE):
		default:
			return fail("setxattr", f.Name(), err)
		}
	}
	return nil
}
