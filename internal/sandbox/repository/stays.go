package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A name that is not there cannot be covered by a mount, so it is made: an empty file or
// directory with the sticky bit, which nobody's own has, so that one that a killed process
// left is known. Git and others take it for nothing. Each box that needs one holds a shared
// lock on it, and the last removes it.

func isStay(fi fs.FileInfo) bool {
	return fi.Mode()&fs.ModeSticky != 0 && (fi.IsDir() && fi.Mode().Perm()&^0o755 == 0 || fi.Mode().IsRegular() && fi.Size() == 0 && fi.Mode().Perm()&^0o444 == 0)
}

// stay makes a name, or what above it is missing. It returns the path that is to be covered,
// "" where nobody can make it.
func (c *collector) stay(path string, dir bool) (string, os.FileInfo, error) {
	for range 100 { // others make and remove the same
		at := path
		for above := filepath.Dir(path); above != c.root(path) && above != "/"; above = filepath.Dir(above) {
			if fi, err := os.Lstat(above); err != nil || isStay(fi) {
				at, dir = above, true
			} else if !fi.IsDir() {
				return "", nil, nil // there is no such path, and the link above it is not ours to judge
			}
		}
		err := create(at, dir)
		if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return "", nil, nil // who is inside is the same user
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", nil, fmt.Errorf("keep agents from making %s: %w", at, err)
		}
		f, err := os.OpenFile(at, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
			f.Close()
			return "", nil, fmt.Errorf("keep agents from making %s: %w", at, err)
		}
		fi, err := f.Stat()
		if now, gone := os.Lstat(at); err == nil && gone == nil && os.SameFile(fi, now) {
			if isStay(fi) {
				c.stays = append(c.stays, f)
			} else {
				f.Close() // the user's own by now
			}
			return at, fi, nil
		}
		f.Close()
	}
	return "", nil, fmt.Errorf("keep agents from making %s: it changes all the time", path)
}

func create(at string, dir bool) error {
	if dir {
		return unix.Mkdir(at, unix.S_ISVTX|0o755)
	}
	fd, err := unix.Open(at, unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, unix.S_ISVTX|0o444)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// Release removes the names that were made, unless another box needs them. It is called
// when nothing runs in the box any more, and may be called again.
func (g *Guards) Release() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.stays {
		release(f)
		f.Close()
	}
	for _, f := range g.kept {
		f.Close()
	}
	g.stays, g.kept = nil, nil
}

func release(f *os.File) {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	fi, err := f.Stat()
	now, gone := os.Lstat(f.Name())
	if err != nil || gone != nil || !os.SameFile(fi, now) {
		return
	}
	if !fi.IsDir() && fi.Size() == 0 {
		_ = unix.Unlink(f.Name())
		return
	}
	if errors.Is(unix.Rmdir(f.Name()), syscall.ENOTEMPTY) { // the user has put something there
		_ = f.Chmod(0o755)
	}
}
