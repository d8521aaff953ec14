package local

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
)

// What the server keeps of an executor is in its directory `own`, which no box
// shows: the token, the socket, the log and what is laid over /etc. executord gets
// the token on its stdin, the socket as descriptor 3 and the log as stdout, so that
// no path that the server opens lies where an agent can write.
const (
	own      = "own"
	maxToken = 128
	maxLog   = 1 << 20
)

// prepareOwn makes the directory of one start and takes away what an earlier
// version shared with the agent.
func (d *Driver) prepareOwn(id thole.ExecutorID) error {
	if err := os.RemoveAll(d.dir(id, "run")); err != nil {
		return err
	}
	if err := os.Mkdir(d.dir(id, own), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for name, text := range map[string]string{
		"here":   "", // it goes with the executor's directory, and executord with it
		"passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:1000:1000:agent:" + sandboxHome + ":/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		"group":  "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n",
	} {
		if err := atomicfile.Write(d.dir(id, own, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// newToken makes the bearer token of this start. The file is how a later owner
// learns it; it is never on a command line.
func (d *Driver) newToken(id thole.ExecutorID) (string, error) {
	var b [32]byte
	rand.Read(b[:])
	token := hex.EncodeToString(b[:])
	return token, atomicfile.Write(d.dir(id, own, "token"), []byte(token), 0o600)
}

func (d *Driver) token(id thole.ExecutorID) (string, error) {
	f, err := openRegular(d.dir(id, own, "token"), os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	token, err := io.ReadAll(io.LimitReader(f, maxToken))
	return string(token), err
}

// listen makes the socket on which executord will answer.
func (d *Driver) listen(id thole.ExecutorID) (*os.File, error) {
	path := d.dir(id, own, "d.sock")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	ln.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	return ln.File()
}

// openLog opens the log for executord's output. A long one is truncated.
func (d *Driver) openLog(id thole.ExecutorID) (*os.File, error) {
	f, err := openRegular(d.dir(id, own, "executord.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.Size() > maxLog {
		if err := f.Truncate(0); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (d *Driver) lastLines(id thole.ExecutorID) string {
	f, err := openRegular(d.dir(id, own, "executord.log"), os.O_RDONLY)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer f.Close()
	const last = 2000
	if st, err := f.Stat(); err == nil && st.Size() > last {
		_, _ = f.Seek(st.Size()-last, io.SeekStart)
	}
	data, _ := io.ReadAll(io.LimitReader(f, last))
	return strings.TrimSpace(string(data))
}

// openRegular opens a regular file and nothing else: it follows no link and waits
// for no pipe.
func openRegular(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	return f, nil
}
