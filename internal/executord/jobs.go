package executord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/strictjson"
)

const (
	jobGrace = 5 * time.Second // between the request to end and the kill
	maxJobs  = 64              // that are known at a time
)

// jobs are the commands of jobs, which run next to turns in the shared box. What is
// known of each lies in a directory of its own before it begins, so that none begins
// twice, and so that one that executord left without an end is known to have been cut off.
type jobs struct {
	dir string
	run func(wire.JobRequest) (*process.Process, error)

	mu     sync.Mutex // guards what follows
	by     map[thole.JobID]*job
	closed bool
	wg     sync.WaitGroup
}

// job is one command.
type job struct {
	dir string

	mu   sync.Mutex // guards what follows
	info wire.Job
	why  string        // it was asked to end
	end  func()        // ends it
	grew chan struct{} // closed when there is more output, or the end
}

func openJobs(dir string, run func(wire.JobRequest) (*process.Process, error)) (*jobs, error) {
	js := &jobs{dir: dir, run: run, by: map[thole.JobID]*job{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		j := &job{dir: filepath.Join(dir, e.Name()), info: wire.Job{ID: thole.JobID(e.Name())}}
		body, err := os.ReadFile(j.file("end"))
		if err != nil || strictjson.Unmarshal(body, &j.info) != nil {
			j.info.Ended, j.info.ExitCode, j.info.Summary = true, -1, "the executor was stopped while the command ran"
		}
		if fi, err := os.Stat(j.file("out")); err == nil {
			j.info.Bytes = fi.Size()
		}
		js.by[j.info.ID] = j
	}
	return js, nil
}

func (j *job) file(name string) string { return filepath.Join(j.dir, name) }

func (j *job) snapshot() wire.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.info
}

// changed is closed at the next change.
func (j *job) changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.grew == nil {
		j.grew = make(chan struct{})
	}
	return j.grew
}

// note changes what is known of a job and wakes its readers.
func (j *job) note(change func(*wire.Job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.info)
	if j.grew != nil {
		close(j.grew)
		j.grew = nil
	}
}

// begin starts a command, unless it was.
func (js *jobs) begin(req wire.JobRequest) (wire.Job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.by[req.ID]; j != nil {
		return j.snapshot(), nil
	}
	if js.closed {
		return wire.Job{}, thole.Errorf(thole.CodeUnavailable, "the executor stops")
	}
	if len(js.by) >= maxJobs {
		return wire.Job{}, thole.Errorf(thole.CodeOverloaded, "this executor has %d jobs", len(js.by))
	}
	j := &job{dir: filepath.Join(js.dir, string(req.ID)), info: wire.Job{ID: req.ID, ExitCode: -1}}
	if err := os.Mkdir(j.dir, 0o700); err != nil {
		return wire.Job{}, thole.Errorf(thole.CodeUnavailable, "begin a job: %w", err)
	}
	body, _ := json.Marshal(req)
	err := atomicfile.Write(j.file("begun"), body, 0o600) // it also makes the directory's name durable with the next sync
	var out *os.File
	if err == nil {
		out, err = os.OpenFile(j.file("out"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	}
	if err != nil {
		return wire.Job{}, errors.Join(thole.Errorf(thole.CodeUnavailable, "begin a job: %w", err), os.RemoveAll(j.dir))
	}
	js.by[req.ID] = j
	p, err := js.run(req)
	if err != nil {
		out.Close()
		j.finish(-1, "the command did not start: "+err.Error())
		return j.snapshot(), nil
	}
	j.end = func() { p.Stop(jobGrace) }
	js.wg.Go(func() { j.follow(p, out, req.Timeout) })
	return j.snapshot(), nil
}

// follow takes a command to its end.
func (j *job) follow(p *process.Process, out *os.File, timeout time.Duration) {
	began := time.Now()
	if timeout > 0 {
		t := time.AfterFunc(timeout, func() { j.stop(fmt.Sprintf("timed out after %s", timeout)) })
		defer t.Stop()
	}
	lost := j.keep(p.Stdout, out)
	err := p.Wait(context.Background())
	_ = out.Sync()
	out.Close()
	took := time.Since(began).Round(time.Millisecond)
	code, summary := 0, fmt.Sprintf("exit status 0 after %s", took)
	var exit *process.ExitError
	switch {
	case errors.As(err, &exit):
		code, summary = exit.ExitCode(), fmt.Sprintf("%v after %s", exit, took)
	case err != nil: // its box ended, and it with it
		code, summary = -1, "the command was cut off: "+err.Error()
	}
	j.mu.Lock()
	if j.why != "" {
		code, summary = -1, j.why
	}
	j.mu.Unlock()
	if lost != "" {
		summary += "; " + lost
	}
	j.finish(code, summary)
}

// keep writes output down as far as it may, and reads the rest so that the command
// does not wait for anybody.
func (j *job) keep(from io.Reader, out *os.File) (lost string) {
	buf := make([]byte, 32<<10)
	var kept int64
	for {
		n, err := from.Read(buf)
		if n > 0 && lost == "" {
			m, failed := out.Write(buf[:min(int64(n), wire.MaxJobOutput-kept)])
			kept += int64(m)
			switch {
			case failed != nil:
				lost = "its output is incomplete: " + failed.Error()
			case m < n:
				lost = fmt.Sprintf("its output is incomplete: only %d bytes are kept", wire.MaxJobOutput)
			}
			j.note(func(w *wire.Job) { w.Bytes = kept })
		}
		if err != nil {
			return lost
		}
	}
}

// finish records the end. Where it cannot be written down it is still known here.
func (j *job) finish(code int, summary string) {
	end := j.snapshot()
	end.Ended, end.ExitCode, end.Summary = true, code, summary
	body, _ := json.Marshal(end)
	_ = atomicfile.Write(j.file("end"), body, 0o600)
	j.note(func(w *wire.Job) { *w = end })
}

// stop ends the command for a reason, and returns when it has.
func (j *job) stop(why string) {
	j.mu.Lock()
	ended, end := j.info.Ended, j.end
	if !ended && j.why == "" {
		j.why = why
	}
	j.mu.Unlock()
	if !ended && end != nil {
		end()
	}
}

func (js *jobs) find(id thole.JobID) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.by[id]; j != nil {
		return j, nil
	}
	return nil, thole.Errorf(thole.CodeNotFound, "no job %s in this executor", id)
}

// finishOrForget ends a command; forgotten, nothing is left of it.
func (js *jobs) finishOrForget(req wire.JobEnd) (wire.Job, error) {
	j, err := js.find(req.ID)
	if err != nil {
		return wire.Job{}, err
	}
	j.stop(cmp.Or(req.Why, "cancelled"))
	for changed := j.changed(); !j.snapshot().Ended; changed = j.changed() { // it is being written down
		<-changed
	}
	if !req.Forget {
		return j.snapshot(), nil
	}
	js.mu.Lock()
	delete(js.by, req.ID)
	js.mu.Unlock()
	return j.snapshot(), os.RemoveAll(j.dir)
}

// ids are those of all jobs, and how many of them run.
func (js *jobs) ids() (ids []thole.JobID, running int) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for id, j := range js.by {
		ids = append(ids, id)
		if !j.snapshot().Ended {
			running++
		}
	}
	slices.Sort(ids)
	return ids, running
}

// close ends what runs, and waits for it.
func (js *jobs) close() {
	js.mu.Lock()
	js.closed = true
	all := make([]*job, 0, len(js.by))
	for _, j := range js.by {
		all = append(all, j)
	}
	js.mu.Unlock()
	for _, j := range all {
		go j.stop("the executor was stopped while the command ran")
	}
	js.wg.Wait()
}

// startJob answers POST /jobs.
func (s *Server) startJob(_ context.Context, req wire.JobRequest) (wire.Job, error) {
	if !thole.ValidUUID(string(req.ID)) || len(req.Argv) == 0 || req.Argv[0] == "" || req.Timeout < 0 {
		return wire.Job{}, thole.Errorf(thole.CodeInvalid, "a job needs an id and a command")
	}
	if err := s.narrow(req.Network); err != nil {
		return wire.Job{}, err
	}
	return s.jobs.begin(req)
}

// runJob starts the command in the box that agents share. Its two streams are one.
func (s *Server) runJob(req wire.JobRequest) (*process.Process, error) {
	in, err := s.boxes.shared()
	if err != nil {
		return nil, err
	}
	return startJob(req.Argv, s.cfg.Dirs.work(), s.environ(), in)
}

func startJob(argv []string, dir string, env map[string]string, in *box.Box) (*process.Process, error) {
	args := append([]string{"-c", `exec 2>&1; exec "$@"`, "sh"}, argv...)
	p, err := process.Start(process.Spec{Path: "/bin/sh", Args: args, Dir: dir, Env: env, Box: in})
	if err == nil {
		p.Stdin.Close()
	}
	return p, err
}

func (s *Server) endJob(_ context.Context, req wire.JobEnd) (wire.Job, error) {
	return s.jobs.finishOrForget(req)
}

func (s *Server) job(w http.ResponseWriter, r *http.Request) {
	j, err := s.jobs.find(thole.JobID(r.PathValue("job")))
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	jsonhttp.Write(w, http.StatusOK, j.snapshot())
}

// output streams what a command said after ?after=N bytes, until it is over or the
// client goes.
func (s *Server) output(w http.ResponseWriter, r *http.Request) {
	j, err := s.jobs.find(thole.JobID(r.PathValue("job")))
	after, bad := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err == nil && (bad != nil || after < 0) {
		err = thole.Errorf(thole.CodeInvalid, "invalid after %q", r.URL.Query().Get("after"))
	}
	var f *os.File
	if err == nil {
		if f, err = os.Open(j.file("out")); err != nil {
			err = thole.Errorf(thole.CodeUnavailable, "read output: %w", err)
		}
	}
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	flush := http.NewResponseController(w)
	_ = flush.SetWriteDeadline(time.Time{})
	w.WriteHeader(http.StatusOK)
	_ = flush.Flush()
	for {
		changed := j.changed()
		now := j.snapshot()
		if now.Bytes > after {
			n, err := io.Copy(w, io.NewSectionReader(f, after, now.Bytes-after))
			after += n
			if err == nil {
				err = flush.Flush()
			}
			if err != nil || after < now.Bytes {
				panic(http.ErrAbortHandler) // a clean end would read as "the command is over"
			}
		}
		if now.Ended {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
