//go:build unix && !linux

package beneath

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func chmod(dirfd int, name string, mode uint32) error {
	return fail("chmod", name, retry(func() error { return unix.Fchmodat(dirfd, name, mode, unix.AT_SYMLINK_NOFOLLOW) }))
}

func setTime(fd int, mtime int64) error {
	tv := []unix.Timeval{unix.NsecToTimeval(mtime), unix.NsecToTimeval(mtime)}
	return unix.Futimes(fd, tv)
}

// Flush refuses: sync(2) may return here before anything is on disk, so that
// nothing proves a restored tree to be durable.
func (d *Dir) Flush() error { return fail("sync", d.f.Name(), errors.ErrUnsupported) }

// Path is a name that leads nowhere: a directory cannot be walked by its
// descriptor here, and its old path may be somebody else's by now.
func (d *Dir) Path() string { return "/dev/null/unsupported" }

// Guard cannot vouch for anything here.
func Guard(*os.File) (end func() bool, ok bool) { return nil, false }
