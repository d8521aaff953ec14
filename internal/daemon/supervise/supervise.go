// Package supervise runs the command of a job under a small process of its own,
// the supervisor, so that neither a closed terminal nor a daemon that stops, dies
// or is replaced ends the command or loses its result.
//
// The supervisor writes who it is, captures the output, kills every descendant
// when it is told to or the time is up, writes the result, and only then reports
// it. The owner of the home knows its supervisors by process identity and ends
// jobs whose supervisor is gone.
package supervise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/procid"
)

const (
	killGrace = 5 * time.Second
	// MaxOutput bounds what one command may store.
	MaxOutput = 256 << 20
)

// Result is what a command came to.
type Result struct {
	State    thole.JobState `json:"state"`
	ExitCode int            `json:"exit_code"`
	Summary  string         `json:"summary"`
	Took     time.Duration  `json:"took"`
}

// dirOf is where a home keeps its supervised commands.
func dirOf(home string) string { return filepath.Join(home, "run") }

func file(home string, job thole.JobID, suffix string) string {
	return filepath.Join(dirOf(home), string(job)+suffix)
}

// OutputFile is where a command's output is captured.
func OutputFile(home string, job thole.JobID) string { return file(home, job, ".out") }

// Spec is a command to supervise.
type Spec struct {
	Home    string
	Job     thole.JobID
	Argv    []string
	Timeout time.Duration
	// Started is called when the supervisor is known and the command runs.
	Started func(error)
	// Report tells the owner; it is repeated until it succeeds.
	Report func(ctx context.Context, r Result) error
}

// Supervise runs the command and returns when its result is reported or durable
// for the owner to find.
func Supervise(ctx context.Context, s Spec) error {
	if err := os.MkdirAll(dirOf(s.Home), 0o700); err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := adoptOrphans(); err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	body, _ := json.Marshal(procid.Self())
	if err := atomicfile.Write(file(s.Home, s.Job, ".json"), body, 0o600); err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	r := run(s, signals)
	body, _ = json.Marshal(r)
	if err := atomicfile.Write(file(s.Home, s.Job, ".result"), body, 0o600); err != nil {
		return fmt.Errorf("supervise: %w", err)
	}
	var err error
	for range (backoff.Policy{Min: 100 * time.Millisecond, Max: 30 * time.Second}).Tries(ctx, 20) {
		if err = s.Report(ctx, r); err == nil || thole.CodeOf(err) == thole.CodeConflict || thole.CodeOf(err) == thole.CodeNotFound {
			forget(s.Home, s.Job)
			return nil
		}
	}
	return cmp.Or(ctx.Err(), err) // the result file stays; the owner's sweep takes it
}

func forget(home string, job thole.JobID) {
	for _, suffix := range []string{".out", ".json", ".result"} {
		_ = os.Remove(file(home, job, suffix))
	}
}

func run(s Spec, signals <-chan os.Signal) Result {
	begun := time.Now()
	failed := func(format string, args ...any) Result {
		return Result{State: thole.JobFailed, ExitCode: -1, Summary: fmt.Sprintf(format, args...), Took: time.Since(begun)}
	}
	started := s.Started
	if started == nil {
		started = func(error) {}
	}
	out, err := os.OpenFile(OutputFile(s.Home, s.Job), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		started(err)
		return failed("cannot capture output: %v", err)
	}
	defer out.Close()
	pr, pw, err := os.Pipe()
	if err != nil {
		started(err)
		return failed("cannot capture output: %v", err)
	}
	defer pr.Close()
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = pw, pw
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = pw.Close()
	if err != nil {
		started(err)
		return failed("cannot start %s: %v", s.Argv[0], err)
	}
	started(nil)
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(&capped{w: out, left: MaxOutput}, pr)
		copied <- err
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var timeout <-chan time.Time
	if s.Timeout > 0 {
		t := time.NewTimer(s.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	why := ""
	select {
	case err = <-ended:
	case <-timeout:
		why = fmt.Sprintf("timed out after %s", s.Timeout)
	case sig := <-signals:
		why = fmt.Sprintf("stopped by %s", sig)
	}
	killTree(why == "") // also what a finished command left behind
	if why != "" {
		err = <-ended
	}
	if e := <-copied; e != nil && why == "" {
		return failed("output could not be captured: %v", e)
	}
	if err := out.Sync(); err != nil {
		return failed("output could not be stored: %v", err)
	}
	took := time.Since(begun)
	var exit *exec.ExitError
	switch {
	case why != "":
		return Result{thole.JobFailed, -1, why, took}
	case err == nil:
		return Result{thole.JobReady, 0, fmt.Sprintf("exit status 0 after %s", took.Round(time.Millisecond)), took}
	case errors.As(err, &exit):
		return Result{thole.JobFailed, exit.ExitCode(), fmt.Sprintf("%s after %s", exit, took.Round(time.Millisecond)), took}
	}
	return failed("%v", err)
}

// killTree ends every descendant: politely first unless now is set, and again
// until none is left, because a dying one may still fork.
func killTree(now bool) {
	self := os.Getpid()
	if !now {
		for _, p := range descendants(self) {
			_ = syscall.Kill(p, syscall.SIGTERM)
		}
		for end := time.Now().Add(killGrace); time.Now().Before(end) && len(living(self)) > 0; {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for {
		left := living(self)
		if len(left) == 0 {
			return
		}
		for _, p := range left {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// living lists descendants that are not zombies, reaping adopted ones.
func living(pid int) (left []int) {
	for _, p := range descendants(pid) {
		if procid.Of(p).Alive() == nil {
			left = append(left, p)
		}
	}
	return left
}

// capped drops what is over the bound and says so once.
type capped struct {
	w    io.Writer
	left int64
}

func (c *capped) Write(b []byte) (int, error) {
	if c.left <= 0 {
		return len(b), nil
	}
	n := min(int64(len(b)), c.left)
	if _, err := c.w.Write(b[:n]); err != nil {
		return 0, err
	}
	if c.left -= n; c.left == 0 {
		_, _ = io.WriteString(c.w, "\n[output cut here: over the limit]\n")
	}
	return len(b), nil
}
