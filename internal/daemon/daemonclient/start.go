package daemonclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/transport/unix"
)

// ReadyEnv names the descriptor on which a started daemon reports that it
// answers, or why it cannot.
const ReadyEnv = "THOLE_READY_FD"

// startWait bounds how long a command waits for others to start the daemon, and
// for the daemon itself (a large migration takes a while).
const startWait = 2 * time.Minute

// errWordless: a daemon was there and said nothing.
var errWordless = errors.New("the daemon ended before it answered")

// start makes sure that a process owns the home. Of any number of commands one
// starts the daemon, under a lock; the others find it answering.
func (c *Client) start(ctx context.Context) error {
	if err := daemon.PrepareHome(c.Home); err != nil {
		return err
	}
	lock, err := daemon.LockFile(ctx, filepath.Join(c.Home, "start.lock"), startWait)
	if err != nil {
		return err
	}
	defer lock.Close()
	if nc, err := unix.Dial(ctx, daemon.Socket(c.Home)); err == nil {
		return nc.Close()
	} else if !absent(err) {
		return err
	}
	err = started(ctx, c.Home)
	if errors.Is(err, errWordless) && ctx.Err() == nil {
		// It was killed, or lost a race with the end of the one before; one that cannot
		// start says so, or dies again.
		err = started(ctx, c.Home)
	}
	return err
}

// started starts a daemon and waits for its report.
func started(ctx context.Context, home string) error {
	ready, err := spawn(home)
	if err != nil {
		return err
	}
	defer ready.Close()
	_ = ready.SetReadDeadline(time.Now().Add(startWait))
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Now()) })
	defer stop()
	return report(ready, home)
}

// spawn starts a daemon that outlives us and returns the pipe it reports on.
func spawn(home string, flags ...string) (*os.File, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "start daemon: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(home, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "start daemon: %w", err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "start daemon: %w", err)
	}
	defer w.Close()
	cmd := exec.Command(exe, append([]string{"daemon", "run", "--home", home}, flags...)...)
	cmd.Dir = home
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{w}
	cmd.Env = append(os.Environ(), ReadyEnv+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = r.Close()
		return nil, thole.Errorf(thole.CodeUnavailable, "start daemon: %w", err)
	}
	_ = cmd.Process.Release()
	return r, nil
}

type readiness struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

func report(r io.Reader, home string) error {
	line, err := bufio.NewReader(r).ReadString('\n')
	var st readiness
	if err != nil || strictjson.Unmarshal([]byte(line), &st) != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return thole.Errorf(thole.CodeUnavailable, "the daemon did not answer in time").WithHint("see %s/daemon.log", home)
		}
		return thole.Errorf(thole.CodeUnavailable, "%w", errWordless).WithHint("see %s/daemon.log", home)
	}
	if st.OK {
		return nil
	}
	if st.Code == string(thole.CodeBusy) {
		return nil // an owner appeared meanwhile: ask it
	}
	return &thole.Error{Code: thole.Code(st.Code), Message: "start daemon: " + st.Message, Hint: st.Hint}
}

// Report signals to the process that started this one whether it answers. It is called
// once; without a starter it does nothing.
func Report(err error) {
	fd, e := strconv.Atoi(os.Getenv(ReadyEnv))
	if e != nil || fd < 3 {
		return
	}
	os.Unsetenv(ReadyEnv)
	st := readiness{OK: err == nil}
	if err != nil {
		st.Code, st.Message, st.Hint = string(thole.CodeOf(err)), err.Error(), thole.HintOf(err)
	}
	f := os.NewFile(uintptr(fd), "ready")
	_ = json.NewEncoder(f).Encode(st)
	_ = f.Close()
}

// newer reports whether release a is later than b. Development builds are never
// newer: two of them cannot be ordered.
func newer(a, b string) bool {
	pa, oka := release(a)
	pb, okb := release(b)
	if !oka || !okb {
		return false
	}
	for i := range pa {
		if pa[i] != pb[i] {
			return pa[i] > pb[i]
		}
	}
	return false
}

func release(v string) (parts [3]int, ok bool) {
	fields := strings.Split(strings.TrimPrefix(v, "v"), ".")
	if len(fields) != 3 {
		return parts, false
	}
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil {
			return parts, false
		}
		parts[i] = n
	}
	return parts, true
}
