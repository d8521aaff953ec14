package beneath

import (
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chmod changes the mode through a descriptor that was opened without following
// a link: fchmodat cannot refuse one before Linux 6.6, and a file without read
// permission cannot be opened otherwise.
func chmod(dirfd int, name string, mode uint32) error {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fail("chmod", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fail("chmod", name, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return fail("chmod", name, unix.ELOOP)
	}
	return fail("chmod", name, retry(func() error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode) }))
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
// function ends it and reports whether that held all the time. Whoever opens the
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
