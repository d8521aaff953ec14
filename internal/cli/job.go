package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newJob(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "job", Short: "Report background work whose result belongs to a thread"}
	cmd.AddCommand(newJobSubmit(env), newJobComplete(env), newJobFail(env), newJobCancel(env), newJobQuery(env), newJobList(env),
		newJobWait(env), newJobRun(env), newJobSupervise(env))
	return cmd
}

// submission is what submit and run share.
type submission struct {
	target, endpoint, thread, kind, summary, parent, dedupe, metadata string
	readOnly, approval, network, write                                string
}

func (s *submission) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.target, "target", "thole", "where the thread lives: cli, desktop or thole")
	f.StringVar(&s.endpoint, "endpoint", "", "which home the thread lives in (default: the Codex home for cli and desktop, this home for thole)")
	f.StringVar(&s.thread, "thread-id", "", "thread the result belongs to")
	f.StringVar(&s.kind, "task-kind", "task", "kind of work, for lists")
	f.StringVar(&s.summary, "summary", "", "one line about the work")
	f.StringVar(&s.parent, "parent-job-id", "", "job this one is a part of; its result travels inside the parent's")
	f.StringVar(&s.dedupe, "dedupe-key", "", "a second submission with the same key returns the first job")
	f.StringVar(&s.metadata, "metadata-file", "", `JSON document; may hold {"delivery_policy": {...}}`)
	f.StringVar(&s.readOnly, "delivery-read-only", "", "true or false: the receiving turn only reads")
	f.StringVar(&s.approval, "delivery-requires-approval", "", "true or false")
	f.StringVar(&s.network, "delivery-requires-network", "", "true or false")
	f.StringVar(&s.write, "delivery-requires-write-access", "", "true or false")
}

func (s *submission) params() (wire.SubmitParams, error) {
	p := wire.SubmitParams{
		JobID: newRequest(), Target: s.target, ThreadID: s.thread, ParentID: s.parent, TaskKind: s.kind, Summary: s.summary, DedupeKey: s.dedupe,
	}
	if s.thread == "" {
		return p, thole.Errorf(thole.CodeInvalid, "no thread").WithHint("pass --thread-id")
	}
	var err error
	if p.Endpoint, err = endpointFor(s.target, s.endpoint); err != nil {
		return p, err
	}
	for _, b := range []struct {
		name, value string
		to          **bool
	}{
		{"delivery-read-only", s.readOnly, &p.Policy.ReadOnly}, {"delivery-requires-approval", s.approval, &p.Policy.RequiresApproval},
		{"delivery-requires-network", s.network, &p.Policy.RequiresNetwork}, {"delivery-requires-write-access", s.write, &p.Policy.RequiresWriteAccess},
	} {
		if b.value == "" {
			continue
		}
		v, err := strconv.ParseBool(b.value)
		if err != nil {
			return p, thole.Errorf(thole.CodeInvalid, "--%s %q is neither true nor false", b.name, b.value)
		}
		*b.to = &v
	}
	if s.metadata != "" {
		doc, err := os.ReadFile(s.metadata)
		if err != nil {
			return p, thole.Errorf(thole.CodeInvalid, "read metadata: %w", err)
		}
		if !json.Valid(doc) {
			return p, thole.Errorf(thole.CodeInvalid, "metadata file %s is not JSON", s.metadata)
		}
		p.Metadata = doc
	}
	return p, nil
}

func newJobSubmit(env *Env) *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use: "submit", Short: "Record a job that has begun", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.params()
			if err != nil {
				return err
			}
			var out wire.Submitted
			if err := env.ask(cmd.Context(), wire.JobSubmit, p, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) { printSubmitted(w, out) })
		},
	}
	s.flags(cmd)
	return cmd
}

func printSubmitted(w io.Writer, s wire.Submitted) {
	putf(w, "job %s is %s\n", s.JobID, s.Status)
	if s.Deduplicated {
		putln(w, "it was submitted before under the same dedupe key")
	}
	switch {
	case !s.Delivery.Automatic:
		putln(w, "its result would wait for a human:")
	case len(s.Delivery.Reasons) > 0:
		putln(w, "its result will be delivered by itself, but not now:")
	default:
		putln(w, "its result will be delivered by itself")
	}
	for _, r := range s.Delivery.Reasons {
		putln(w, "  - "+r)
		if strings.HasPrefix(r, "strict-safe: ") {
			putln(w, "    a session with --auto-delivery-policy trusted-all takes any result")
		}
	}
}

func newJobComplete(env *Env) *cobra.Command {
	var p wire.FinishParams
	cmd := &cobra.Command{
		Use: "complete JOB", Short: "Report that a job succeeded; again with the same result is no error", Args: named(&p.JobID, "job-id"),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.finish(cmd.Context(), wire.JobComplete, p) },
	}
	cmd.Flags().StringVar(&p.JobID, "job-id", "", "same as JOB")
	cmd.Flags().StringVar(&p.Summary, "summary", "", "one line about the result")
	cmd.Flags().StringVar(&p.ResultFile, "result-file", "", "file with the result; it is copied, and may be removed afterwards (- reads standard input)")
	return cmd
}

func newJobFail(env *Env) *cobra.Command {
	var p wire.FinishParams
	cmd := &cobra.Command{
		Use: "fail JOB", Short: "Report that a job failed; the failure is delivered like a result", Args: named(&p.JobID, "job-id"),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.finish(cmd.Context(), wire.JobFail, p) },
	}
	cmd.Flags().StringVar(&p.JobID, "job-id", "", "same as JOB")
	cmd.Flags().StringVar(&p.Reason, "reason", "", "why")
	cmd.Flags().StringVar(&p.ResultFile, "result-file", "", "file with details; it is copied")
	return cmd
}

func newJobCancel(env *Env) *cobra.Command {
	var p wire.FinishParams
	cmd := &cobra.Command{
		Use: "cancel JOB", Short: "Cancel a job and its children without a result; a supervised command is killed", Args: named(&p.JobID, "job-id"),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.finish(cmd.Context(), wire.JobCancel, p) },
	}
	cmd.Flags().StringVar(&p.JobID, "job-id", "", "same as JOB")
	cmd.Flags().StringVar(&p.Reason, "reason", "", "why")
	return cmd
}

// finish sends one of the three endings of a job.
func (e *Env) finish(ctx context.Context, method string, p wire.FinishParams) error {
	if p.JobID == "" {
		return thole.Errorf(thole.CodeInvalid, "no job").WithHint("name it: thole job list shows them")
	}
	p.RequestID = newRequest()
	if p.ResultFile == "-" {
		name, err := e.spool()
		if err != nil {
			return err
		}
		defer os.Remove(name)
		p.ResultFile = name
	} else if p.ResultFile != "" {
		abs, err := filepath.Abs(p.ResultFile)
		if err != nil {
			return thole.Errorf(thole.CodeInvalid, "result file: %w", err)
		}
		if p.ResultFile = abs; !utf8.ValidString(abs) {
			p.ResultFile, p.ResultPath = "", []byte(abs)
		}
	}
	var out wire.Job
	if err := e.ask(ctx, method, p, &out); err != nil {
		return err
	}
	return e.print(out, func(w io.Writer) { printJob(w, out) })
}

// spool keeps standard input in a temporary file until the daemon has copied it.
func (e *Env) spool() (string, error) {
	f, err := os.CreateTemp("", "thole-result-*")
	if err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "keep standard input: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(f, e.In); err != nil {
		_ = os.Remove(f.Name())
		return "", thole.Errorf(thole.CodeUnavailable, "keep standard input: %w", err)
	}
	return f.Name(), nil
}

func newJobQuery(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "query JOB", Short: "Show a job and where its result is", Args: exactly(1, "one job id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var out wire.Job
			if err := env.ask(cmd.Context(), wire.JobQuery, wire.JobParams{JobID: args[0]}, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) { printJob(w, out) })
		},
	}
}

func newJobList(env *Env) *cobra.Command {
	var p wire.JobListParams
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out []wire.Job
			if err := env.ask(cmd.Context(), wire.JobList, p, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) {
				t := newTable(w)
				putf(t, "JOB\tSTATUS\tTHREAD\tKIND\tCREATED\tSUMMARY\n")
				for _, j := range out {
					putf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", j.JobID, j.Status, j.SourceThreadID, j.TaskKind, local(j.CreatedAt), strings.Trim(j.TaskSummary+": "+j.ResultSummary, ": "))
				}
				_ = t.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&p.ThreadID, "thread-id", "", "only jobs of this thread")
	cmd.Flags().StringVar(&p.Status, "status", "", "only jobs that are running, ready, failed or cancelled")
	cmd.Flags().IntVar(&p.Limit, "limit", 50, "at most this many")
	return cmd
}

func newJobWait(env *Env) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait JOB…", Short: "Wait until jobs have ended; fails if one failed or was cancelled",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return thole.Errorf(thole.CodeInvalid, "wait for which job?").WithHint("pass one or more job ids")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return env.wait(cmd.Context(), args, timeout) },
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this long (0: never)")
	return cmd
}

func (e *Env) wait(ctx context.Context, ids []string, timeout time.Duration) error {
	if timeout > 0 {
		c, cancel := context.WithTimeoutCause(ctx, timeout, thole.Errorf(thole.CodeBusy, "still running after %s", timeout))
		defer cancel()
		ctx = c
	}
	var out []wire.Job
	if err := e.ask(ctx, wire.JobWait, wire.WaitParams{JobIDs: ids}, &out); err != nil {
		if ctx.Err() != nil && context.Cause(ctx) != nil {
			return context.Cause(ctx)
		}
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a user who stopped reading still gets the exit status
	printed := e.print(out, func(w io.Writer) {
		for _, j := range out {
			printJob(w, j)
		}
	})
	if errors.Is(printed, syscall.EPIPE) {
		printed = nil
	}
	for _, j := range out {
		code := ExitError(0)
		switch {
		case j.ExitCode != nil && *j.ExitCode > 0 && *j.ExitCode < 256:
			code = ExitError(*j.ExitCode)
		case j.Status != string(thole.JobReady):
			code = exitFailed
		}
		if code != 0 {
			if printed != nil {
				printError(e, printed)
			}
			return code
		}
	}
	return printed
}

func printJob(w io.Writer, j wire.Job) {
	status := j.Status
	if j.WaitsForChildren {
		status += " (finished, waits for its children)"
	}
	putf(w, "job %s is %s\n", j.JobID, status)
	t := newTable(w)
	row := func(name, value string) {
		if value != "" {
			putf(t, "  %s\t%s\n", name, value)
		}
	}
	row("thread", j.SourceThreadID+" ("+j.TargetKind+")")
	row("work", strings.TrimSpace(j.TaskKind+" "+j.TaskSummary))
	row("result", j.ResultSummary)
	row("artifact", j.ArtifactID)
	row("parent", j.ParentJobID)
	if b := j.Batch; b != nil {
		row("batch", b.BatchID+" "+batchStatus(*b))
	} else {
		row("batch", j.BatchID)
	}
	_ = t.Flush()
}

func local(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// named takes an id as the argument, or by the flag of earlier versions.
func named(id *string, flag string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return thole.Errorf(thole.CodeInvalid, "%s takes one id, not %d", cmd.Name(), len(args)).WithHint("%s", cmd.UseLine())
		case len(args) == 1 && *id != "":
			return thole.Errorf(thole.CodeInvalid, "%q and --%s both name it", args[0], flag).WithHint("give the id once")
		case len(args) == 1:
			*id = args[0]
		}
		return nil
	}
}

// exactly is cobra.ExactArgs with an error a human can act on.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return thole.Errorf(thole.CodeInvalid, "%s: want %s", cmd.Name(), what)
		}
		return nil
	}
}
