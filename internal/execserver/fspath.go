//go:build linux

package execserver

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/sandbox"
)

// place is a name in an open directory. When it was found by walking, nothing
// between check and use can lead elsewhere: real is where it is, and the name is
// used without following a link.
type place struct {
	dir    int // descriptor, or AT_FDCWD with the whole path as name
	name   string
	real   string
	walked bool
}

const (
	maxLinks = 40
	// maxDepth bounds directories held open by one call. A program can make more than a path may
	// name, by links or from inside, and would use up the server's descriptors with them.
	maxDepth = 1024
)

// scope is how one call may reach files.
type scope struct {
	policy *sandbox.Policy
	follow bool
}

// locate finds a path. Without restrictions the kernel resolves it later. With a
// policy, or when links are forbidden, it walks by directory descriptors and
// resolves links itself, as text: magic links of /proc lead nowhere else. With
// keepLast a link in the last place is not resolved.
func (s scope) locate(path string, keepLast bool) (place, error) {
	if s.follow && !s.policy.RestrictsFiles() {
		return place{dir: unix.AT_FDCWD, name: path, real: path}, nil
	}
	return s.walk(path, keepLast)
}

func (s scope) walk(path string, keepLast bool) (_ place, err error) {
	if len(path) >= unix.PathMax { // as the kernel says; a message holds millions of names, each a step
		return place{}, unix.ENAMETOOLONG
	}
	w := walker{scope: s, todo: split(path)}
	defer func() {
		if err != nil {
			w.popTo(0)
		}
	}()
	if err := w.root(); err != nil {
		return place{}, err
	}
	for len(w.todo) > 0 {
		name := w.todo[0]
		w.todo = w.todo[1:]
		if name == ".." {
			w.popTo(max(1, len(w.fds)-1))
			continue
		}
		done, err := w.step(name, keepLast)
		if err != nil {
			return place{}, w.hide(w.real(name), err)
		}
		if done {
			return w.result(name), nil
		}
	}
	return w.result("."), nil
}

// walker is the state of a walk: fds are the open directories from the root,
// names those below it.
type walker struct {
	scope
	todo  []string
	fds   []int
	names []string
	links int
}

func split(path string) []string {
	var out []string
	for _, name := range strings.Split(path, "/") {
		if name != "" && name != "." {
			out = append(out, name)
		}
	}
	return out
}

func (w *walker) root() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		w.fds = append(w.fds, fd)
	}
	return err
}

func (w *walker) popTo(n int) {
	for len(w.fds) > n {
		unix.Close(w.fds[len(w.fds)-1])
		w.fds = w.fds[:len(w.fds)-1]
		if len(w.names) > 0 {
			w.names = w.names[:len(w.names)-1]
		}
	}
}

func (w *walker) real(name string) string {
	return filepath.Join("/", strings.Join(w.names, "/"), name)
}

// step takes one name; done means that it is the last one.
func (w *walker) step(name string, keepLast bool) (done bool, err error) {
	dir, last := w.fds[len(w.fds)-1], len(w.todo) == 0
	if w.policy.Denied(w.real(name)) {
		return false, unix.EACCES
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if err == unix.ENOENT && last {
			return true, nil // to be created
		}
		return false, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		if last && (keepLast || !w.follow) {
			return true, nil
		}
		if !w.follow {
			return false, unix.ENOTDIR
		}
		return false, w.link(dir, name)
	case unix.S_IFDIR:
		if last {
			return true, nil
		}
		if len(w.fds) > maxDepth {
			return false, unix.ENAMETOOLONG
		}
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return false, err
		}
		w.fds, w.names = append(w.fds, fd), append(w.names, name)
		return false, nil
	}
	if last {
		return true, nil
	}
	return false, unix.ENOTDIR
}

// link puts a link's target in front of what is left to do.
func (w *walker) link(dir int, name string) error {
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return err
	}
	target := string(buf[:n])
	if strings.HasPrefix(target, "/") {
		w.popTo(1)
	}
	w.todo = append(split(target), w.todo...)
	return nil
}

// result keeps the innermost directory for the place and closes the others.
func (w *walker) result(name string) place {
	p := place{name: name, real: w.real(name), walked: true}
	p.dir = w.fds[len(w.fds)-1]
	for _, fd := range w.fds[:len(w.fds)-1] {
		unix.Close(fd)
	}
	w.fds = nil
	return p
}

func (p place) close() {
	if p.walked {
		unix.Close(p.dir)
	}
}

// need checks what the policy allows here, with the error that a read-only mount, an
// unreadable directory or, for what no entry lists, an absent file would give.
func (s scope) need(p place, want sandbox.Access) error {
	switch got := s.policy.Access(p.real); {
	case got >= want:
		return nil
	case got == sandbox.Read:
		return unix.EROFS
	}
	return s.hide(p.real, unix.EACCES)
}

// hide keeps an error from showing whether a path that no entry lists is there. One
// that an entry denies by name is known to the client anyway.
func (s scope) hide(real string, err error) error {
	if s.policy.RestrictsFiles() && s.policy.Access(real) == sandbox.None && !s.policy.Denied(real) {
		return unix.ENOENT
	}
	return err
}

func (p place) open(flags int, mode uint32) (*os.File, error) {
	if p.walked {
		flags |= unix.O_NOFOLLOW
	}
	for {
		fd, err := unix.Openat(p.dir, p.name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, mode)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Regular files ignore the flag; os.File must not try to poll them.
		_ = unix.SetNonblock(fd, false)
		return os.NewFile(uintptr(fd), p.name), nil
	}
}

// stat describes what is there; follow resolves a last link unless it was walked.
func (p place) stat(follow bool) (st unix.Statx_t, err error) {
	flags := unix.AT_STATX_SYNC_AS_STAT
	if p.walked || !follow {
		flags |= unix.AT_SYMLINK_NOFOLLOW
	}
	err = unix.Statx(p.dir, p.name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	return st, err
}

func kindOf(st *unix.Statx_t) uint32 { return uint32(st.Mode) & unix.S_IFMT }
