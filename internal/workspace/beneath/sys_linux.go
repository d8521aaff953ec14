package beneath

import (
	"os"
	"strconv"
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
	h := &held{name: name}
	err := retry(func() (err error) {
		h.fd, err = unix.Openat(d.fd(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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

// Flush makes everything written in the directory's file system durable.
func (d *Dir) Flush() error { return fail("sync", d.f.Name(), unix.Syncfs(d.fd())) }

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
