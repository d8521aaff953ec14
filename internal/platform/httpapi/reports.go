package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// JobPolicy is what the turn that receives a result may need; what is not stated is
// assumed to be the worst.
type JobPolicy struct {
	ReadOnly            *bool `json:"read_only,omitempty"`
	RequiresApproval    *bool `json:"requires_approval,omitempty"`
	RequiresNetwork     *bool `json:"requires_network,omitempty"`
	RequiresWriteAccess *bool `json:"requires_write_access,omitempty"`
}

// JobReport is how a job ended, with a result that is text.
type JobReport struct {
	Summary  string `json:"summary,omitempty" maxLength:"4096" doc:"one line about the result; for a failure why"`
	Result   string `json:"result,omitempty" doc:"the result itself"`
	ExitCode *int64 `json:"exit_code,omitempty" minimum:"0" maximum:"255"`
}

// reportRoutes let work elsewhere, as CI is, say that it began and how it ended.
func (s *Server) reportRoutes() {
	op(s, "POST", "/jobs", "Register a job that runs elsewhere; thole runs nothing, and waits for complete or fail", 201, func(ctx context.Context, in *struct {
		KeyIn
		Body struct {
			Session  string         `json:"session_id" format:"uuid" doc:"the result belongs to it"`
			Kind     string         `json:"task_kind,omitempty" maxLength:"200" doc:"task when absent"`
			Summary  string         `json:"summary,omitempty" maxLength:"4096" doc:"one line about the work"`
			Dedupe   string         `json:"dedupe_key,omitempty" maxLength:"255" doc:"a second job of the session with this key is the first"`
			Parent   string         `json:"parent_job_id,omitempty" format:"uuid"`
			Metadata map[string]any `json:"metadata,omitempty"`
			Policy   JobPolicy      `json:"delivery_policy,omitempty"`
		}
	}) (*body[wire.Submitted], error) {
		p := wire.SubmitParams{
			JobID: thole.NewID[string](s.cfg.Now()), Target: string(thole.TargetThole), ThreadID: in.Body.Session, ParentID: in.Body.Parent,
			TaskKind: in.Body.Kind, Summary: in.Body.Summary, DedupeKey: in.Body.Dedupe, Policy: wire.Policy(in.Body.Policy),
		}
		if p.TaskKind == "" {
			p.TaskKind = "task"
		}
		if in.Key != "" { // the key is the job's name, so that a repeat finds it
			p.JobID = provider.StableID[string]("job", string(actorOf(ctx).User), in.Key)
		}
		if in.Body.Metadata != nil {
			raw, err := json.Marshal(in.Body.Metadata)
			if err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "metadata: %w", err)
			}
			p.Metadata = raw
		}
		made := false
		out, err := once(ctx, s, "POST /jobs", in.Key, in.Body, func() (wire.Submitted, error) {
			made = true
			return call[wire.Submitted](ctx, s, wire.JobSubmit, p)
		})
		if err == nil && !made { // a repeat is answered with the job as it is now
			out, err = call[wire.Submitted](ctx, s, wire.JobSubmit, p)
		}
		return answer(out, err)
	})
	for _, r := range []struct{ path, method, summary string }{
		{"complete", wire.JobComplete, "Report that a job succeeded: JSON, or the result itself in any other type"},
		{"fail", wire.JobFail, "Report that a job failed: JSON, or its output in any other type"},
	} {
		s.serve("POST /jobs/{job_id}/"+r.path, page{
			summary: r.summary, query: []string{"summary", "name", "exit_code"}, header: []string{"Idempotency-Key"},
			body: JobReport{}, status: 200, media: "application/json", shapes: []any{wire.Job{}},
		}, func(w http.ResponseWriter, q *http.Request) {
			j, err := s.report(q, r.method)
			if err != nil {
				s.refuse(w, q, err)
				return
			}
			writeJSON(w, http.StatusOK, j)
		})
	}
}

// resultName is what the file of a result may be called.
var resultName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`) })

// report ends a job. What came as its result lies in a temporary file until it is kept.
func (s *Server) report(r *http.Request, method string) (wire.Job, error) {
	ctx := r.Context()
	p := wire.FinishParams{JobID: r.PathValue("job_id"), RequestID: r.Header.Get("Idempotency-Key")}
	if !thole.ValidUUID(p.JobID) {
		return wire.Job{}, thole.Errorf(thole.CodeNotFound, "no job %.64q", p.JobID)
	}
	if len(p.RequestID) > 255 {
		return wire.Job{}, thole.Errorf(thole.CodeInvalid, "the Idempotency-Key has more than 255 bytes")
	}
	if p.RequestID == "" {
		p.RequestID = traceOf(ctx)
	} else {
		p.RequestID = "key-" + p.RequestID
	}
	query := r.URL.Query()
	name := query.Get("name")
	if name == "" {
		name = "result"
	}
	if !resultName().MatchString(name) {
		return wire.Job{}, thole.Errorf(thole.CodeInvalid, "invalid name %.64q of a result", name).WithHint("letters, digits, dots, dashes and underscores, at most 128")
	}
	p.Summary = query.Get("summary")
	if code := query.Get("exit_code"); code != "" {
		n, err := strconv.ParseInt(code, 10, 64)
		if err != nil || n < 0 || n > 255 {
			return wire.Job{}, thole.Errorf(thole.CodeInvalid, "invalid exit_code %.64q", code)
		}
		p.ExitCode = &n
	}
	dir, err := os.MkdirTemp("", "thole-result-")
	if err != nil {
		return wire.Job{}, thole.Errorf(thole.CodeUnavailable, "take the result: %w", err)
	}
	defer os.RemoveAll(dir)
	if p.ResultFile, err = takeResult(r, filepath.Join(dir, name), &p); err != nil {
		return wire.Job{}, err
	}
	if len(p.Summary) > 4096 {
		return wire.Job{}, thole.Errorf(thole.CodeInvalid, "the summary has more than 4096 bytes")
	}
	p.Reason = p.Summary
	return call[wire.Job](ctx, s, method, p)
}

// takeResult writes the body to a file, and returns its path, "" where there is no result.
func takeResult(r *http.Request, path string, p *wire.FinishParams) (string, error) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media == "application/json" {
		var in JobReport
		data, err := readBody(r)
		if err != nil {
			return "", err
		}
		if err := strictjson.ReadKnown(bytes.NewReader(data), &in); err != nil {
			return "", thole.Errorf(thole.CodeInvalid, "report a job: %w", err)
		}
		if in.ExitCode != nil && (*in.ExitCode < 0 || *in.ExitCode > 255) {
			return "", thole.Errorf(thole.CodeInvalid, "invalid exit_code %d", *in.ExitCode)
		}
		p.Summary, p.ExitCode = in.Summary, in.ExitCode
		if in.Result == "" {
			return "", nil
		}
		if err := os.WriteFile(path, []byte(in.Result), 0o600); err != nil {
			return "", thole.Errorf(thole.CodeUnavailable, "take the result: %w", err)
		}
		return path, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "take the result: %w", err)
	}
	defer f.Close()
	n, err := io.Copy(f, r.Body)
	if err != nil {
		return "", tooLarge(err, "take the result: %w", err)
	}
	if n == 0 {
		return "", nil
	}
	return path, nil
}

// tooLarge keeps the class of a body that is beyond its bound.
func tooLarge(err error, format string, args ...any) error {
	code := thole.CodeInvalid
	if !errors.As(err, new(*http.MaxBytesError)) && errors.As(err, new(*os.PathError)) {
		code = thole.CodeUnavailable
	}
	return thole.Errorf(code, format, args...)
}
