package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/strictjson"
)

// Stays is what a sandbox leaves on the machine for as long as it runs: empty
// directories where a restriction names something that is not there. A mount needs
// something to lie on, and without one the program could make the thing itself.
// Directories go when the last sandbox that needs them is gone, of whichever server.
type Stays struct {
	held []held
	info *os.File // where bubblewrap reports its first process
	pid  int      // that process
	end  *os.File // a descriptor of it
}

// held is a placeholder: a name in an open directory, so that what is laid in the way to it
// changes nothing.
type held struct {
	dir  int
	name string
	file *os.File // with a shared lock, which keeps others from removing it
}

// placeholder is the mode of such directories: nobody's own have it.
const placeholder = fs.ModeDir | fs.ModeSticky

func isPlaceholder(fi fs.FileInfo) bool {
	return fi.Mode()&^0o555 == placeholder
}

func isPlaceholderMode(mode uint32) bool {
	return mode&^0o555 == unix.S_IFDIR|unix.S_ISVTX
}

// removal is far more than it takes to remove a placeholder once it is locked.
const removal = 500 * time.Millisecond

// hold makes sure that a restriction on a path in a writable directory can be
// mounted. It returns the place that a placeholder holds, which may be above the
// path, or "" when there is something at the path or never will be.
func (s *Stays) hold(path string) (string, error) {
	began := time.Now()
	for try := 0; try < 100 || time.Since(began) < 2*removal; try++ { // others make and remove the same
		at := firstMissing(path)
		dir, err := openReal(filepath.Dir(at), unix.O_DIRECTORY)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) { // it is being exchanged
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			if errors.Is(err, unix.EACCES) && !mine(filepath.Dir(at)) {
				return "", nil // who is inside cannot pass it either
			}
			return "", refuse("%s does not exist and could be created: %v", at, err)
		}
		h, there, err := holdIn(dir, filepath.Base(at), time.Since(began) > removal)
		if h.file != nil {
			s.held = append(s.held, h)
			return at, nil
		}
		unix.Close(dir)
		if err != nil {
			return "", refuse("%s %v", at, err)
		}
		if there {
			return "", nil
		}
	}
	return "", refuse("%s changes all the time", path)
}

var errReplaced = errors.New("is a link in a writable directory")

// holdIn makes a placeholder, or takes the one that is there, and locks it. Without one and
// without an error something else is there, or it is to be tried again.
func holdIn(dir int, name string, late bool) (h held, there bool, err error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return held{}, true, errReplaced
	case err == nil && !isPlaceholderMode(st.Mode):
		return held{}, true, nil
	case err != nil:
		if err := unix.Mkdirat(dir, name, unix.S_ISVTX|0o555); err != nil && err != unix.EEXIST {
			if err == unix.EROFS || err == unix.EACCES && !mineAt(dir) {
				return held{}, true, nil // who is inside cannot make it either
			}
			return held{}, false, fmt.Errorf("does not exist and could be created: %w", err)
		}
	}
	fd, err := unix.Openat(dir, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return held{}, false, nil //nolint:nilerr // gone again
	}
	h = held{dir, name, os.NewFile(uintptr(fd), name)}
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	if err == nil && h.still() {
		return h, true, nil
	}
	h.file.Close()
	if err != nil && err != unix.EWOULDBLOCK {
		return held{}, false, fmt.Errorf("cannot be kept: %w", err)
	}
	if err != nil {
		// It is being removed, or a program that may read it locks it to stop us. Then no
		// sandbox needs it, which would have a lock, and another takes its place.
		if late {
			_ = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		}
		time.Sleep(time.Millisecond)
	}
	return held{}, false, nil
}

// openReal opens a path that leads through no link, to look from there.
func openReal(path string, flags int) (int, error) {
	flags |= unix.O_PATH | unix.O_CLOEXEC
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		switch fd, err := unix.Openat2(unix.AT_FDCWD, path, &how); err {
		case unix.EAGAIN, unix.EINTR: // something was renamed
		case unix.ENOSYS, unix.EPERM: // an old kernel, or a container that does not know the call
			return unix.Open(path, flags|unix.O_NOFOLLOW, 0)
		default:
			return fd, err
		}
	}
}

// firstMissing is the path, or the first of its parents that is not there or is a
// placeholder.
func firstMissing(path string) string {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if fi, err := os.Lstat(dir); err != nil || isPlaceholder(fi) {
			path = dir
		}
	}
	return path
}

func mine(dir string) bool {
	var st unix.Stat_t
	return unix.Stat(dir, &st) != nil || int(st.Uid) == os.Geteuid()
}

func mineAt(dir int) bool {
	var st unix.Stat_t
	return unix.Fstat(dir, &st) != nil || int(st.Uid) == os.Geteuid()
}

// still reports whether the open directory is a placeholder and has its name.
func (h held) still() bool {
	var a, b unix.Stat_t
	if unix.Fstat(int(h.file.Fd()), &a) != nil || unix.Fstatat(h.dir, h.name, &b, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return isPlaceholderMode(a.Mode) && a.Dev == b.Dev && a.Ino == b.Ino
}

// watch asks bubblewrap for its first process, with which everything inside ends.
// Bubblewrap itself ends a little sooner.
func (s *Stays) watch(box *Box) error {
	if len(s.held) == 0 {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.info = r
	box.Add("--info-fd", box.Pass(w))
	return nil
}

// Started learns who is inside, once the command is running and its files are
// closed here. It returns as soon as bubblewrap has said so or failed.
func (s *Stays) Started() {
	if s == nil || s.info == nil {
		return
	}
	var info struct {
		PID int `json:"child-pid"`
	}
	// One flat object; its end, because the program may hold the pipe open.
	text, err := bufio.NewReader(s.info).ReadBytes('}')
	if err != nil || strictjson.Unmarshal(text, &info) != nil || info.PID <= 0 {
		return
	}
	if fd, err := unix.PidfdOpen(info.PID, unix.PIDFD_NONBLOCK); err == nil {
		s.pid, s.end = info.PID, os.NewFile(uintptr(fd), "pidfd")
	}
}

// patience bounds the wait for a sandbox that was killed.
const patience = 10 * time.Second

// End removes what nobody needs any more. It is called when bubblewrap has ended.
func (s *Stays) End() {
	if s == nil {
		return
	}
	if s.info != nil {
		s.info.Close()
	}
	over := true
	if s.end != nil {
		over = s.alone() || s.awaitEnd()
		s.end.Close()
	}
	for _, h := range s.held {
		if over {
			h.remove()
		}
		h.file.Close()
		unix.Close(h.dir)
	}
	s.held = nil
}

// alone reports that the first process has no child: then there is nothing else
// inside, and it need not be awaited, which takes as long as the kernel clears mounts.
func (s *Stays) alone() bool {
	id := strconv.Itoa(s.pid)
	children, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	return err == nil && len(children) == 0
}

// awaitEnd waits until nothing lives inside: removed earlier, a directory could be
// made again by what is about to be killed.
func (s *Stays) awaitEnd() bool {
	raw, err := s.end.SyscallConn()
	if err != nil || s.end.SetReadDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	return raw.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	}) == nil
}

// remove takes a placeholder away unless another sandbox needs it. One that was
// given something in the meantime becomes an ordinary directory.
func (h held) remove() {
	if unix.Flock(int(h.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !h.still() {
		return
	}
	if err := unix.Unlinkat(h.dir, h.name, unix.AT_REMOVEDIR); errors.Is(err, unix.ENOTEMPTY) {
		_ = h.file.Chmod(0o755)
	}
}
