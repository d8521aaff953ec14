package sandbox

import (
	"bufio"
	"errors"
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
	held []*os.File // each with a shared lock, which keeps others from removing it
	info *os.File   // where bubblewrap reports its first process
	pid  int        // that process
	end  *os.File   // a descriptor of it
}

// placeholder is the mode of such directories: nobody's own have it.
const placeholder = fs.ModeDir | fs.ModeSticky

func isPlaceholder(fi fs.FileInfo) bool {
	return fi.Mode()&^0o555 == placeholder
}

// hold makes sure that a restriction on a path in a writable directory can be
// mounted. It returns the place that a placeholder holds, which may be above the
// path, or "" when there is something at the path or never will be.
func (s *Stays) hold(path string) (string, error) {
	for range 100 { // others make and remove the same
		at := firstMissing(path)
		fi, err := os.Lstat(at)
		switch {
		case err == nil && fi.Mode()&fs.ModeSymlink != 0:
			return "", refuse("%s is a link in a writable directory", at)
		case err == nil && !isPlaceholder(fi):
			return "", nil
		case err != nil:
			if err := unix.Mkdir(at, unix.S_ISVTX|0o555); err != nil && err != unix.EEXIST {
				if err == unix.EROFS || err == unix.EACCES && !mine(filepath.Dir(at)) {
					return "", nil // who is inside cannot make it either
				}
				return "", refuse("%s does not exist and could be created: %v", at, err)
			}
		}
		f, err := os.OpenFile(at, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
			f.Close()
			return "", refuse("keep %s: %v", at, err)
		}
		if still(f, at) {
			s.held = append(s.held, f)
			return at, nil
		}
		f.Close()
	}
	return "", refuse("%s changes all the time", path)
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

// still reports whether the open directory is a placeholder and has its name.
func still(f *os.File, at string) bool {
	a, err := f.Stat()
	if err != nil || !isPlaceholder(a) {
		return false
	}
	b, err := os.Lstat(at)
	return err == nil && os.SameFile(a, b)
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
	for _, f := range s.held {
		if over {
			remove(f)
		}
		f.Close()
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
func remove(f *os.File) {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !still(f, f.Name()) {
		return
	}
	if err := unix.Rmdir(f.Name()); errors.Is(err, unix.ENOTEMPTY) {
		_ = f.Chmod(0o755)
	}
}
