//go:build linux

package box

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hostile is a box whose inside says what it likes.
func hostile(t testing.TB) (*Box, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := socketOf(os.NewFile(uintptr(fds[0]), "box"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := socketOf(os.NewFile(uintptr(fds[1]), "init"))
	if err != nil {
		t.Fatal(err)
	}
	b := &Box{conn: conn, pending: map[uint64]*call{}, running: map[uint64]*Child{}, done: make(chan struct{})}
	close(b.done)
	t.Cleanup(func() { b.end(ErrGone); theirs.Close() })
	return b, theirs
}

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// say sends bytes with descriptors, as an init that was taken over would.
func say(c *net.UnixConn, data []byte, files int) {
	var oob []byte
	if files > 0 {
		null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		defer unix.Close(null)
		fds := make([]int, files)
		for i := range fds {
			fds[i] = null
		}
		oob = unix.UnixRights(fds...)
	}
	_, _, _ = c.WriteMsgUnix(data, oob, nil)
}

func frame(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// Whatever comes from inside, each caller gets an answer, nothing is left open and
// nothing breaks.
func FuzzTheInside(f *testing.F) {
	for _, body := range []string{``, `{}`, `{"id":1}`, `{"id":1,"errno":2}`, `{"id":1,"exited":true,"status":0}`, `{"id":99}`, `{"id":0}`, `{"id":-1}`, `[1]`, `{"id":1,"errno":18446744073709551615}`} {
		f.Add(frame(body), 0)
		f.Add(frame(body), 1)
		f.Add(append(frame(`{"id":1,"errno":1}`), frame(body)...), 2)
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, '{'}, 200)
	f.Add([]byte{0, 1}, 3)
	f.Fuzz(func(t *testing.T, data []byte, files int) {
		if files < 0 || files > 250 || len(data) > 1<<16 {
			t.Skip()
		}
		before := descriptors(t)
		b, theirs := hostile(t)
		go b.read()
		asked := make(chan struct{}, 4)
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		for _, ask := range []func(){
			func() { _, _ = b.Spawn(Command{Path: "/", Files: [3]*os.File{null, null, null}}) },
			func() {
				if ln, err := b.Listen(1); err == nil {
					ln.Close()
				}
			},
			func() {
				if c, err := b.Dial(context.Background(), 1); err == nil {
					c.Close()
				}
			},
			func() {
				if m, s, err := b.Pty(); err == nil {
					m.Close()
					s.Close()
				}
			},
		} {
			go func() { ask(); asked <- struct{}{} }()
		}
		say(theirs, data, files)
		theirs.CloseWrite()
		for range cap(asked) {
			<-asked
		}
		b.end(ErrGone)
		theirs.Close()
		null.Close()
		for end := time.Now().Add(time.Minute); descriptors(t) > before; <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d descriptors before, %d after", before, descriptors(t))
			}
		}
	})
}

// An answer that never ends is refused by its announced length, before it is kept.
func TestAnAnswerHasABound(t *testing.T) {
	b, theirs := hostile(t)
	go b.read()
	say(theirs, []byte{0x7f, 0xff, 0xff, 0xff}, 0)
	if _, err := b.Listen(1); err == nil {
		t.Fatal("it was taken")
	}
}

// A program's descriptor that is not of a process below us is refused.
func TestAProgramIsBelowItsOwner(t *testing.T) {
	for name, open := range map[string]func() (int, error){
		"no process": func() (int, error) { return unix.Open(os.DevNull, unix.O_RDONLY, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			b, theirs := hostile(t)
			go b.read()
			fd, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			done := make(chan error, 1)
			go func() {
				_, err := b.Spawn(Command{Path: "/", Files: [3]*os.File{os.Stdin, os.Stdin, os.Stdin}})
				done <- err
			}()
			var req request
			files, err := receive(theirs, maxRequest, &req)
			if err != nil {
				t.Fatal(err)
			}
			closeAll(files)
			if err := send(theirs, answer{ID: req.ID}, fd); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err == nil {
				t.Error("it was taken for a program")
			}
		})
	}
}
