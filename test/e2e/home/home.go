// Package home gives end-to-end tests a real thole: the binary built from this
// tree, and homes that it owns.
package home

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// Home is a directory with the thole that serves it.
type Home struct {
	t      testing.TB
	Dir    string
	Binary string
	Vars   []string // further variables of every program
}

// New makes a home that nobody owns yet.
func New(t testing.TB) *Home {
	t.Helper()
	// A unix socket's path must be short.
	dir, err := os.MkdirTemp("", "th")
	if err != nil {
		t.Fatal(err)
	}
	h := &Home{t: t, Dir: dir, Binary: lab.Thole(t)}
	t.Cleanup(func() {
		poll.Until(t, "the end of all that was started in the home", func() bool {
			h.stopDaemon() // a command may just have started it
			left, err := process.Marked("THOLE_HOME=" + dir)
			return err == nil && len(left) == 0
		})
		h.stopExecutors()
		_ = os.RemoveAll(dir)
	})
	return h
}

// stopDaemon ends the owner that a command has started, if one did.
func (h *Home) stopDaemon() {
	if _, err := os.Stat(daemon.Socket(h.Dir)); err == nil {
		_ = h.Command("daemon", "stop").Run() // one that was killed leaves its socket and answers nobody
	}
}

// stopExecutors ends what outlives thole on purpose.
func (h *Home) stopExecutors() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	d := local.New(local.Config{Root: filepath.Join(h.Dir, "x"), Binary: h.Binary})
	list, err := d.List(ctx)
	if err != nil {
		h.t.Errorf("list executors: %v", err)
	}
	for _, x := range list {
		if err := d.Stop(ctx, x.ID); err != nil {
			h.t.Errorf("stop executor: %v", err)
		}
	}
}

// Env is the whole environment of the programs of this home.
func (h *Home) Env() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.Dir, "THOLE_HOME=" + h.Dir}, h.Vars...)
}

// Command is thole with arguments.
func (h *Home) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.Binary, args...)
	cmd.Env = h.Env()
	cmd.Dir = h.Dir
	return cmd
}

// Run runs thole to its end and returns what it printed and its exit code.
func (h *Home) Run(args ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	cmd := h.Command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	done := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(poll.Limit):
		_ = cmd.Process.Kill()
		<-done
		h.t.Fatalf("thole %v did not end:\n%s%s", args, out.String(), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Up starts thole with the scripted model and agent, until the test ends or kill
// ends it without a warning.
func (h *Home) Up() (kill func()) {
	h.t.Helper()
	_ = os.Remove(daemon.Socket(h.Dir)) // a killed owner leaves it behind
	cmd := h.Command("up", "--demo", "--no-browser", "--listen", "127.0.0.1:0")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	h.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(15 * time.Second):
			_ = cmd.Process.Kill()
			<-gone
		}
		if h.t.Failed() {
			h.t.Logf("thole up:\n%s", log.String())
		}
	})
	// A socket's appearance cannot be waited for.
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, err := os.Stat(daemon.Socket(h.Dir)); err == nil {
			return func() {
				_ = cmd.Process.Kill()
				err := <-gone
				gone <- err
			}
		}
		select {
		case err := <-gone:
			gone <- err
			h.t.Fatalf("thole up ended: %v\n%s", err, log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			h.t.Fatal("thole up did not answer")
		}
	}
}
