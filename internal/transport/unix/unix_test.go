package unix_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/transport/unix"
)

func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(d) })
	return d
}

func wantCode(t *testing.T, err error, code thole.Code) {
	t.Helper()
	if thole.CodeOf(err) != code {
		t.Fatalf("got %v (%s), want %s", err, thole.CodeOf(err), code)
	}
}

func TestListenModesAndRemoval(t *testing.T) {
	path := filepath.Join(dir(t), "a", "b", "s.sock")
	l, err := unix.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700, filepath.Dir(filepath.Dir(path)): 0o700} {
		if fi, err := os.Lstat(p); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v %v", p, fi.Mode(), err)
		}
	}
	if l.Addr().String() != path {
		t.Error(l.Addr())
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = c.Write([]byte("x"))
			_ = c.Close()
		}
	}()
	c, err := unix.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	_ = c.Close()
	_, err = unix.Listen(path)
	wantCode(t, err, thole.CodeBusy)
	if err := l.Close(); err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Fatal("socket left behind", err)
	}
	_, err = unix.Dial(t.Context(), path)
	wantCode(t, err, thole.CodeUnavailable)
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(dir(t), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	_, err = unix.Listen(path) // a live socket without our lock, as another program makes it
	wantCode(t, err, thole.CodeBusy)
	_ = old.Close()
	l, err := unix.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// TestBusySocketIsNotStale fills a listener's backlog: a connection is refused for
// want of room, which does not prove that nobody is there.
func TestBusySocketIsNotStale(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems refuse a full backlog as if nobody listened")
	}
	path := filepath.Join(dir(t), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		c, err := net.Dial("unix", path)
		if err != nil {
			break
		}
		defer func() { _ = c.Close() }()
	}
	_, err = unix.Listen(path)
	wantCode(t, err, thole.CodeBusy)
	if _, err := os.Lstat(path); err != nil {
		t.Fatal("a live socket was removed")
	}
}

func TestForeignThingsAreLeftAlone(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(dir(t), "s")
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := unix.Listen(path)
		wantCode(t, err, thole.CodeConflict)
		if b, err := os.ReadFile(path); string(b) != "precious" {
			t.Fatal(err)
		}
	})
	t.Run("open directory", func(t *testing.T) {
		d := dir(t)
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
		_, err := unix.Listen(filepath.Join(d, "s"))
		wantCode(t, err, thole.CodeForbidden)
		if !strings.Contains(thole.HintOf(err), "chmod") {
			t.Error(thole.HintOf(err))
		}
	})
	t.Run("long path", func(t *testing.T) {
		_, err := unix.Listen(filepath.Join(dir(t), strings.Repeat("x", 110)))
		wantCode(t, err, thole.CodeInvalid)
	})
	t.Run("other owner", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root to give a socket away")
		}
		d := dir(t)
		path := filepath.Join(d, "s")
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		_ = old.Close()
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		_, err = unix.Listen(path)
		wantCode(t, err, thole.CodeForbidden)
		if err := os.Chown(d, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		_, err = unix.Listen(filepath.Join(d, "t"))
		wantCode(t, err, thole.CodeForbidden)
	})
	t.Run("replaced while listening", func(t *testing.T) {
		path := filepath.Join(dir(t), "s")
		l, err := unix.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if _, err := os.Lstat(path); err != nil {
			t.Fatal("Close removed what it did not make")
		}
	})
}

// TestRace lets many starters fight for one path with a dead socket in it: one wins.
func TestRace(t *testing.T) {
	path := filepath.Join(dir(t), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	_ = old.Close()
	var won atomic.Int32
	var wg sync.WaitGroup
	all := make(chan *unix.Listener, 16)
	for range 16 {
		wg.Go(func() {
			if l, err := unix.Listen(path); err == nil {
				won.Add(1)
				all <- l
			}
		})
	}
	wg.Wait()
	close(all)
	if won.Load() != 1 {
		t.Fatalf("%d listeners", won.Load())
	}
	for l := range all {
		if c, err := unix.Dial(context.Background(), path); err != nil {
			t.Fatal(err)
		} else {
			_ = c.Close()
		}
		_ = l.Close()
	}
}
