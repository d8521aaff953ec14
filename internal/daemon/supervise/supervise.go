// Package supervise runs the command of a job under a small process of its own,
// the supervisor, so that neither a closed terminal nor a daemon that stops, dies
// or is replaced ends the command or loses its result.
//
// The supervisor writes who it is, captures the output, kills every descendant
// when it is asked to or the time is up, writes the result, and only then reports
// it. The owner of the home knows its supervisors by process identity and ends
// jobs whose supervisor is gone.
package supervise

import (
	"context"
	"encoding/json"
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
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/procid"
)

const (
	killGrace = 5 * time.Second
	// tries is how often a durable result is reported before it is left to the owner.
	tries = 20
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
	// Report reports to the owner; it is repeated.
	Report func(ctx context.Context, r Result) error
}

// Supervise runs the command and returns when its result is reported or durable
// for the owner to find.
func Supervise(ctx context.Context, s Spec) error {
	if s.Started == nil {
		s.Started = func(error) {}
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Ignore(syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := prepare(s); err != nil {
		forget(s.Home, s.Job)
		err = fmt.Errorf("supervise: %w", err)
		s.Started(err)
		return err
	}
	r := run(s, signals)
	_ = os.Remove(file(s.Home, s.Job, ".room"))
	return reportResult(ctx, s, r)
}

// reportResult reports the result. As long as it is neither reported nor durable, as on a
// full disk, this process is the only one that knows it, and tries on.
func reportResult(ctx context.Context, s Spec, r Result) error {
	body, _ := json.Marshal(r)
	durable := false
	for again, n := (backoff.Policy{Min: 100 * time.Millisecond, Max: 30 * time.Second}).Begin(), 1; ; n++ {
		if !durable {
			durable = atomicfile.Write(file(s.Home, s.Job, ".result"), body, 0o600) == nil
		}
		err := s.Report(ctx, r)
		switch {
		case err == nil, thole.CodeOf(err) == thole.CodeConflict, thole.CodeOf(err) == thole.CodeNotFound:
			forget(s.Home, s.Job)
			return nil
		case durable && n >= tries:
			return err // the owner's sweep takes the result file
		}
		if err := again.Wait(ctx); err != nil {
			return err
		}
	}
}

// prepare says who supervises, and takes what the end will need.
func prepare(s Spec) error {
	if err := os.MkdirAll(dirOf(s.Home), 0o700); err != nil {
		return err
	}
	if err := process.AdoptOrphans(); err != nil {
		return err
	}
	body, _ := json.Marshal(procid.Self())
	if err := atomicfile.Write(file(s.Home, s.Job, ".json"), body, 0o600); err != nil {
		return err
	}
	return setAside(file(s.Home, s.Job, ".room"))
}

// forget removes the files of a job, last the one that the sweep knows them by.
func forget(home string, job thole.JobID) {
	for _, suffix := range []string{".out", ".room", ".result", ".json"} {
		_ = os.Remove(file(home, job, suffix))
	}
}

func run(s Spec, signals <-chan os.Signal) Result {
	begun := time.Now()
	failed := func(format string, args ...any) Result {
		return Result{State: thole.JobFailed, ExitCode: -1, Summary: fmt.Sprintf(format, args...), Took: time.Since(begun)}
	}
	f, err := os.OpenFile(OutputFile(s.Home, s.Job), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		s.Started(err)
		return failed("cannot capture output: %v", err)
	}
	defer f.Close()
	pr, pw, err := os.Pipe()
	if err != nil {
		s.Started(err)
		return failed("cannot capture output: %v", err)
	}
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = pw, pw
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = pw.Close()
	if err != nil {
		_ = pr.Close()
		s.Started(err)
		return failed("cannot start %s: %v", s.Argv[0], err)
	}
	s.Started(nil)
	out := &capture{f: f, most: MaxOutput}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, pr)
		_ = pr.Close() // a process that still writes gets an error: nothing reads
		copied <- err
	}()
	ended := make(chan struct{})
	go func() { process.AwaitExit(cmd); close(ended) }()
	var timeout <-chan time.Time
	if s.Timeout > 0 {
		t := time.NewTimer(s.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	why := ""
	select {
	case <-ended:
	case <-timeout:
		why = fmt.Sprintf("timed out after %s", s.Timeout)
	case sig := <-signals:
		why = fmt.Sprintf("stopped by %s", sig)
	}
	grace := killGrace
	if why == "" { // also what a finished command left behind
		grace = 0
	}
	if err := process.EndDescendants(cmd, grace); err != nil && why == "" {
		why = fmt.Sprintf("it could not be ended: %v", err)
	}
	_ = cmd.Wait() // how it ended is in its state
	if e := <-copied; out.lost == nil {
		out.lost = e
	}
	_ = os.Remove(file(s.Home, s.Job, ".room"))
	out.close()
	r := Result{State: thole.JobFailed, ExitCode: -1, Took: time.Since(begun)}
	switch state := cmd.ProcessState; {
	case why != "":
		r.Summary = why
	case state.Success():
		r.State, r.ExitCode, r.Summary = thole.JobReady, 0, fmt.Sprintf("exit status 0 after %s", r.Took.Round(time.Millisecond))
	default:
		r.ExitCode, r.Summary = state.ExitCode(), fmt.Sprintf("%s after %s", state, r.Took.Round(time.Millisecond))
	}
	if missing := out.missing(); missing != "" {
		r.Summary += "; " + missing
	}
	return r
}
