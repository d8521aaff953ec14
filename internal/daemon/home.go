// Package daemon owns a home: its lock, its socket, and the life of the process
// of it. One process owns a home at a time; every other thole command talks
// to it.
//
// Own takes the lock, Serve answers on the socket until the process is asked to
// stop, hands over, or has had nothing to do for the idle timeout. What it answers
// is given from outside as methods; the package holds no durable truth and serves
// nobody whose uid it cannot prove.
package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
)

// SocketName is the socket of a home.
const SocketName = "thole.sock"

// Socket is the path of a home's socket.
func Socket(home string) string { return filepath.Join(home, SocketName) }

const ownHome = "choose a home of your own with --home or THOLE_HOME"

// PrepareHome makes the home, or proves that an existing one is a directory of
// ours that nobody else can enter.
func PrepareHome(home string) error {
	if !filepath.IsAbs(home) {
		return thole.Errorf(thole.CodeInvalid, "home %q is not an absolute path", home)
	}
	fi, err := os.Lstat(home)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(home, 0o700); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "make home: %w", err).WithHint(ownHome)
		}
		fi, err = os.Lstat(home)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "open home: %w", err).WithHint(ownHome)
	}
	st, _ := fi.Sys().(*syscall.Stat_t)
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return thole.Errorf(thole.CodeForbidden, "home %s is a symbolic link", home).WithHint("pass the directory it leads to with --home or THOLE_HOME")
	case !fi.IsDir():
		return thole.Errorf(thole.CodeInvalid, "home %s is not a directory", home).WithHint(ownHome)
	case st == nil || int(st.Uid) != os.Geteuid():
		return thole.Errorf(thole.CodeForbidden, "home %s belongs to another user", home).WithHint(ownHome)
	case fi.Mode().Perm()&0o077 != 0:
		return thole.Errorf(thole.CodeForbidden, "home %s can be entered by other users (mode %#o)", home, fi.Mode().Perm()).WithHint("chmod 700 %s", home)
	}
	return nil
}

// Owner is the proof that this process owns a home.
type Owner struct {
	Home string
	lock *os.File
}

// Own prepares the home and takes its lock, waiting for up to wait for another
// process to give it up. Still taken is thole.CodeBusy.
func Own(ctx context.Context, home string, wait time.Duration) (*Owner, error) {
	if err := PrepareHome(home); err != nil {
		return nil, err
	}
	f, err := LockFile(ctx, filepath.Join(home, "owner.lock"), wait)
	if thole.CodeOf(err) == thole.CodeBusy {
		return nil, thole.Errorf(thole.CodeBusy, "home %s is owned by another thole process", home).WithHint("thole daemon status shows it, thole daemon stop ends it")
	}
	if err != nil {
		return nil, err
	}
	return &Owner{Home: home, lock: f}, nil
}

// Owned reports whether a process owns the home, whether or not it answers.
func Owned(home string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(home, "owner.lock"), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, thole.Errorf(thole.CodeForbidden, "look whether %s has an owner: %w", home, err)
	}
	defer f.Close()
	for {
		// Shared, so that those who look do not see one another.
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
		case err == nil:
			return false, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true, nil
		case !errors.Is(err, syscall.EINTR):
			return false, thole.Errorf(thole.CodeForbidden, "look whether %s has an owner: %w", home, err)
		}
	}
}

// Release gives the home up. The operating system does the same when the process
// dies.
func (o *Owner) Release() error { return o.lock.Close() }

// LockFile takes an exclusive lock on a file that only its owner can open. The
// file stays: removing it would let a third process lock a different one.
func LockFile(ctx context.Context, path string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "lock: %w", err).WithHint("make %s writable, or choose another home with --home or THOLE_HOME", filepath.Dir(path))
	}
	held := backoff.Policy{Min: time.Millisecond, Max: 20 * time.Millisecond}.Begin()
	for deadline := time.Now().Add(wait); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, thole.Errorf(thole.CodeUnavailable, "lock %s: %w", path, err)
		}
		if !time.Now().Before(deadline) {
			_ = f.Close()
			return nil, thole.Errorf(thole.CodeBusy, "%s is locked by another process", path)
		}
		if err := held.Wait(ctx); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
}

// ListenerPath is where on the home's socket the contract is served for clients of a
// listener, who may be on other machines. Every other path is for programs of this one.
const ListenerPath = "/listener"
