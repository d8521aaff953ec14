//go:build unix && !linux

package beneath

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// held is a name in an open directory. Without descriptors that need no permission
// the name is looked up again each time, links refused.
type held struct {
	dir  *Dir
	name string
	stat Stat
	bits uint32 // all of the mode, set-id bits too
}

func (d *Dir) hold(name string) (*held, error) {
	at, real := d.at(name)
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(at, real, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return &held{d, name, statOf(&st), uint32(st.Mode) & 0o7777}, fail("lstat", name, err)
}

func (h *held) close() {}

func (h *held) chmod(mode uint32) error {
	at, real := h.dir.at(h.name)
	return fail("chmod", h.name, retry(func() error { return unix.Fchmodat(at, real, mode, unix.AT_SYMLINK_NOFOLLOW) }))
}

func (h *held) reopen(flags int) (*os.File, error) {
	return h.dir.openat(h.name, unix.O_RDONLY|unix.O_NONBLOCK|flags, 0)
}

func setTime(fd int, mtime int64) error {
	tv := []unix.Timeval{unix.NsecToTimeval(mtime), unix.NsecToTimeval(mtime)}
	return unix.Futimes(fd, tv)
}

// Flush refuses: sync(2) may return here before anything is on disk, so that
// nothing proves a restored tree to be durable.
func (d *Dir) Flush() error { return fail("sync", d.f.Name(), errors.ErrUnsupported) }

// Path is a name that leads nowhere: a directory cannot be walked by its
// descriptor here, and its old path may be another file's by now.
func (d *Dir) Path() string { return "/dev/null/unsupported" }

// Guard cannot vouch for anything here.
func Guard(*os.File) (end func() bool, ok bool) { return nil, false }

// ExtentsOf finds no holes here: files are read whole.
func ExtentsOf(*os.File, int64) (Extents, error) { return nil, nil }

// AttrsOf keeps none here.
func AttrsOf(*os.File) ([]Attr, int) { return nil, 0 }

// SetAttrs sets none here.
func SetAttrs(*os.File, []Attr) error { return nil }
