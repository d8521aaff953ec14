package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/supervise"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newJobRun(env *Env) *cobra.Command {
	var s submission
	var timeout time.Duration
	var wait, inThread bool
	cmd := &cobra.Command{
		Use: "run [flags] -- CMD…", Short: "Run a command as a job: its output is the result, and it outlives this terminal",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return thole.Errorf(thole.CodeInvalid, "run what?").WithHint("thole job run --thread-id ID -- make test")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if inThread {
				return env.runInThread(cmd.Context(), s, args, timeout, wait)
			}
			return env.run(cmd.Context(), s, args, timeout, wait)
		},
	}
	s.flags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "kill the command after this long (0: never)")
	cmd.Flags().BoolVar(&inThread, "in-thread", false, "run it in the thread's box, on the agent's files; the executor is started if it does not run")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the command and exit with its status")
	return cmd
}

func (e *Env) run(ctx context.Context, s submission, argv []string, timeout time.Duration, wait bool) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "run %s: %w", argv[0], err).WithHint("name a program on the PATH or with its path; a line of shell needs: -- sh -c 'LINE'")
	}
	if s.summary == "" {
		s.summary = strings.Join(argv, " ")
	}
	p, err := s.params()
	if err != nil {
		return err
	}
	p.Supervised = true
	var out wire.Submitted
	if err := e.ask(ctx, wire.JobSubmit, p, &out); err != nil {
		return err
	}
	if out.JobID == p.JobID { // a deduplicated job already has its command
		if err := e.supervisor(out.JobID, append([]string{path}, argv[1:]...), timeout); err != nil {
			var j wire.Job
			fail := wire.FinishParams{JobID: out.JobID, RequestID: newRequest(), Reason: err.Error()}
			if e2 := e.ask(ctx, wire.JobFail, fail, &j); e2 != nil && thole.CodeOf(e2) != thole.CodeConflict {
				return e2
			}
			return err
		}
	}
	if !wait {
		return e.print(out, func(w io.Writer) { printSubmitted(w, out) })
	}
	return e.waitFor(ctx, out.JobID)
}

// runInThread has the owner run the command in the box of the thread.
func (e *Env) runInThread(ctx context.Context, s submission, argv []string, timeout time.Duration, wait bool) error {
	if s.summary == "" {
		s.summary = strings.Join(argv, " ")
	}
	p, err := s.params()
	if err != nil {
		return err
	}
	p.Command = &wire.Command{Argv: argv, Timeout: timeout}
	var out wire.Submitted
	if err := e.ask(ctx, wire.JobSubmit, p, &out); err != nil {
		return err
	}
	if !wait {
		return e.print(out, func(w io.Writer) { printSubmitted(w, out) })
	}
	return e.waitFor(ctx, out.JobID)
}

// waitFor says first which job it waits for, so that a person who stops waiting can find it.
func (e *Env) waitFor(ctx context.Context, job string) error {
	if !e.JSON && !e.Quiet {
		putln(e.Err, "job", job)
	}
	err := e.wait(ctx, []string{job}, 0)
	if ctx.Err() != nil {
		return (&thole.Error{Err: ctx.Err()}).WithHint("the command goes on: %s waits for it, %s ends it", e.program("job wait "+job), e.program("job cancel "+job))
	}
	return err
}

// supervisor starts the process that outlives us and waits until the command runs.
func (e *Env) supervisor(job string, argv []string, timeout time.Duration) error {
	home, err := e.home()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start supervisor: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start supervisor: %w", err)
	}
	defer r.Close()
	args := append([]string{"job", "supervise", "--home", home, "--job-id", job, "--timeout", timeout.String(), "--"}, argv...)
	cmd := exec.Command(exe, args...)
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = append(os.Environ(), daemonclient.ReadyEnv+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start supervisor: %w", err)
	}
	_ = cmd.Process.Release()
	var began struct {
		OK      bool
		Message string
	}
	switch err := json.NewDecoder(r).Decode(&began); {
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "the supervisor ended before the command began")
	case began.OK:
		return nil
	}
	return thole.Errorf(thole.CodeUnavailable, "the command did not start: %s", began.Message)
}

// newJobSupervise is the process between the daemon and a command. Users never
// call it.
func newJobSupervise(env *Env) *cobra.Command {
	var job string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "supervise [flags] -- CMD…", Hidden: true, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := env.home()
			if err != nil {
				return err
			}
			owner := &daemonclient.Client{Home: home}
			// Signals end the command, not this process: it still has to report.
			return supervise.Supervise(context.WithoutCancel(cmd.Context()), supervise.Spec{
				Home: home, Job: thole.JobID(job), Argv: args, Timeout: timeout, Started: daemonclient.Report,
				Report: func(ctx context.Context, r supervise.Result) error {
					code := int64(r.ExitCode)
					p := wire.FinishParams{
						JobID: job, ExitCode: &code, RequestID: "supervisor-" + job, Summary: r.Summary, ResultFile: supervise.OutputFile(home, thole.JobID(job)),
					}
					if _, err := os.Stat(p.ResultFile); errors.Is(err, fs.ErrNotExist) {
						p.ResultFile = "" // the command never began
					}
					method := wire.JobComplete
					if r.State == thole.JobFailed {
						method, p.Reason = wire.JobFail, r.Summary
					}
					return owner.Call(ctx, method, p, nil)
				},
			})
		},
	}
	cmd.Flags().StringVar(&job, "job-id", "", "job")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "kill the command after this long")
	return cmd
}

// ledgerLine is one step of a batch's story.
func ledgerLine(w io.Writer, a wire.Audit) {
	move := ""
	if a.From != "" || a.To != "" {
		move = strings.TrimSpace(a.From + " → " + a.To)
	}
	putf(w, "  %s\t%s\t%s\t%s\t%s\n", a.At.Local().Format("01-02 15:04:05.000"), a.Via, a.Event, move, proofText(a.Proof))
}
