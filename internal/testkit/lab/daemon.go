package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// daemon is a server of the lab. It belongs to one test binary, which holds the
// write end of a pipe; a watcher process reads the other end and, when the binary
// ends in whatever way, stops the server and removes its directory. Only if the
// watcher is killed too is something left, and then reap takes it away.
type daemon struct {
	dir   string
	alive io.WriteCloser // never written; closes when this process ends
}

// watchScript runs as sh -c with the directory and the server's command line. A
// server that does not end within its grace is killed, along with the helper
// that dockerd would leave. The pid appears whole: a reader polls for the file.
const watchScript = `dir=$1; shift
"$@" >"$dir/log" 2>&1 &
pid=$!; echo $pid >"$dir/pid.new"; mv "$dir/pid.new" "$dir/pid"
cat >/dev/null
kill -TERM $pid
(sleep 30; kill -KILL $pid) >/dev/null 2>&1 & timer=$!
wait $pid; kill $timer
[ -f "$dir/exec/containerd/containerd.pid" ] && kill -KILL "$(cat "$dir/exec/containerd/containerd.pid")"
[ -f "$dir/bridge" ] && ip link delete "$(cat "$dir/bridge")"
rm -rf --one-file-system "$dir"`

// labRoot holds the directories of running daemons, one user's apart from another's.
func labRoot() string { return filepath.Join(os.TempDir(), fmt.Sprintf("thole-lab-%d", os.Getuid())) }

// launch makes a private directory, starts what argv says in it and waits until
// ready returns nil.
func launch(name string, prepare func(dir string) ([]string, error), ready func(dir string) error) (*daemon, error) {
	if err := os.MkdirAll(labRoot(), 0o700); err != nil {
		return nil, err
	}
	reap(labRoot())
	dir, err := os.MkdirTemp(labRoot(), name+"-")
	if err != nil {
		return nil, err
	}
	argv, err := prepare(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	d := &daemon{dir: dir}
	watcher := exec.Command("/bin/sh", append([]string{"-c", watchScript, "sh", dir}, argv...)...)
	watcher.Dir = dir
	watcher.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	watcher.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if d.alive, err = watcher.StdinPipe(); err != nil {
		return nil, err
	}
	if err := watcher.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := writeOwner(dir, watcher.Process.Pid); err != nil {
		return nil, errors.Join(err, d.alive.Close())
	}
	if err := d.await(ready); err != nil {
		out, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("%s did not start: %w\n%s", name, err, tail(out)), d.alive.Close())
	}
	return d, writePart(dir)
}

func (d *daemon) await(ready func(dir string) error) error {
	deadline := time.Now().Add(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(d.dir)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) > 15 {
		lines = lines[len(lines)-15:]
	}
	return strings.Join(lines, "\n")
}
