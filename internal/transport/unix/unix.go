// Package unix listens on and dials same-user unix sockets. A socket file has
// mode 0600 in a directory that only its owner can change; every accepted peer is
// proven to run under our uid and outside of sandboxes. Nothing is removed that is not a dead socket of
// ours, and there is no fallback to TCP.
package unix

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/peercred"
)

// maxPath is the shortest limit among the systems we run on (macOS), less one
// for the temporary name.
const maxPath = 102

// Listener is a net.Listener whose Close removes the socket it made.
type Listener struct {
	net.Listener
	path string
	made os.FileInfo
	lock *os.File
	once sync.Once
}

// Listen makes the socket. It fails with CodeBusy when someone answers there and
// with CodeForbidden when the path or its directory is not ours.
func Listen(path string) (*Listener, error) {
	if len(path) > maxPath {
		return nil, thole.Errorf(thole.CodeInvalid, "listen on %s: the path is longer than %d bytes", path, maxPath).
			WithHint("choose a shorter path; the system bounds socket names")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "listen on %s: %w", path, err)
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	l, err := bind(path)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	l.lock = lock
	return l, nil
}

// checkDir wants a directory that no other user can change: ours and closed to
// others, or a sticky one of root's such as /tmp.
func checkDir(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "check socket directory: %w", err)
	}
	open := fi.Mode().Perm()&0o022 != 0
	switch owner := uid(fi); {
	case owner == os.Geteuid() && !open:
		return nil
	case (owner == 0 || owner == os.Geteuid()) && fi.Mode()&fs.ModeSticky != 0:
		return nil
	case owner == os.Geteuid():
		return thole.Errorf(thole.CodeForbidden, "socket directory %s can be changed by other users (mode %#o)", dir, fi.Mode().Perm()).
			WithHint("chmod 700 %s", dir)
	}
	return thole.Errorf(thole.CodeForbidden, "socket directory %s belongs to another user", dir).
		WithHint("choose a path in a directory of your own")
}

func uid(fi os.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// takeLock keeps two starters from removing each other's sockets. The lock file
// stays: removing it would let a third lock a different inode.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "lock %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, busy(path)
		}
		return nil, thole.Errorf(thole.CodeUnavailable, "lock %s: %w", path, err)
	}
	return f, nil
}

func busy(path string) error {
	return thole.Errorf(thole.CodeBusy, "listen on %s: another process is listening there", path).
		WithHint("stop it or choose another path")
}

// clearStale removes a socket of thole's that nobody answers on.
func clearStale(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "listen on %s: %w", path, err)
	case fi.Mode()&fs.ModeSocket == 0:
		return thole.Errorf(thole.CodeConflict, "listen on %s: a file that is not a socket is in the way", path).
			WithHint("move it away or choose another path")
	case uid(fi) != os.Geteuid():
		return thole.Errorf(thole.CodeForbidden, "listen on %s: the socket belongs to another user (uid %d)", path, uid(fi)).
			WithHint("choose another path")
	}
	c, err := net.DialTimeout("unix", path, 2*time.Second)
	if err == nil {
		_ = c.Close()
		return busy(path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return thole.Errorf(thole.CodeBusy, "listen on %s: cannot prove the old socket dead: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return thole.Errorf(thole.CodeUnavailable, "remove dead socket: %w", err)
	}
	return nil
}

// bind makes the socket under a temporary name, closes it to others and renames
// it: the real name never has a wider mode.
func bind(path string) (*Listener, error) {
	if err := clearStale(path); err != nil {
		return nil, err
	}
	tmp := path + "~"
	if err := clearStale(tmp); err != nil {
		return nil, err
	}
	ul, err := net.ListenUnix("unix", &net.UnixAddr{Name: tmp, Net: "unix"})
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "listen on %s: %w", path, err)
	}
	ul.SetUnlinkOnClose(false)
	fi, err := place(tmp, path)
	if err != nil {
		_ = ul.Close()
		_ = os.Remove(tmp)
		return nil, thole.Errorf(thole.CodeUnavailable, "listen on %s: %w", path, err)
	}
	return &Listener{Listener: ul, path: path, made: fi}, nil
}

func place(tmp, path string) (os.FileInfo, error) {
	if err := os.Chmod(tmp, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, path); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// Accept returns the next peer of our own uid and process namespace; others are
// hung up on. A sandboxed program has our uid too, and must not ask for another
// program without its sandbox.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if peercred.Neighbour(c) == nil {
			return c, nil
		}
		_ = c.Close()
	}
}

// Addr is the path that clients dial.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops listening and removes the socket unless someone replaced it.
func (l *Listener) Close() (err error) {
	l.once.Do(func() {
		if fi, e := os.Lstat(l.path); e == nil && os.SameFile(fi, l.made) {
			_ = os.Remove(l.path)
		}
		err = errors.Join(l.Listener.Close(), l.lock.Close())
	})
	return err
}

// Dial connects and proves that the listener runs under our uid. Ours also hang up on
// whom they do not see among their processes; the error then says so.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "connect to %s: %w", path, err)
	}
	if _, err := peercred.SameUser(c); err != nil {
		_ = c.Close()
		return nil, thole.Errorf(thole.CodeForbidden, "connect to %s: %w", path, err).
			WithHint("the socket is served by another user; nothing was sent")
	}
	if u, ok := c.(*net.UnixConn); ok && errors.Is(peercred.Neighbour(c), peercred.ErrOtherNamespace) {
		return &distant{UnixConn: u, path: path}, nil
	}
	return c, nil
}
