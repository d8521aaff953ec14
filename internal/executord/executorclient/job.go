package executorclient

import (
	"context"
	"errors"
	"io"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
)

// StartJob starts the command of a job, or returns the one that is there.
func (c *Client) StartJob(ctx context.Context, req wire.JobRequest) (wire.Job, error) {
	return ofJob(req.ID)(call[wire.Job](ctx, c, "POST", "/jobs", req))
}

// Job asks how far a command is.
func (c *Client) Job(ctx context.Context, id thole.JobID) (wire.Job, error) {
	return ofJob(id)(call[wire.Job](ctx, c, "GET", "/jobs/"+string(id), nil))
}

// EndJob ends a command and may have it forgotten.
func (c *Client) EndJob(ctx context.Context, req wire.JobEnd) (wire.Job, error) {
	return ofJob(req.ID)(call[wire.Job](ctx, c, "POST", "/jobs/end", req))
}

func ofJob(id thole.JobID) func(wire.Job, error) (wire.Job, error) {
	return func(j wire.Job, err error) (wire.Job, error) {
		if err == nil && j.ID != id {
			err = beyond("it was asked for job %s and answered for %.64q", id, j.ID)
		}
		if len(j.Summary) > maxSummary {
			j.Summary = j.Summary[:maxSummary]
		}
		return j, err
	}
}

const maxSummary = 4 << 10

// JobOutput writes what a command said after some bytes to w. It returns nil when the
// command is over and w has all of its output.
func (c *Client) JobOutput(ctx context.Context, id thole.JobID, after int64, w io.Writer) error {
	resp, err := c.do(ctx, "GET", "/jobs/"+string(id)+"/output?after="+strconv.FormatInt(after, 10), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	into := &written{w: w}
	n, err := io.Copy(into, io.LimitReader(resp.Body, wire.MaxJobOutput-after+1))
	switch {
	case into.err != nil:
		return into.err
	case after+n > wire.MaxJobOutput:
		return beyond("more than %d bytes of output", wire.MaxJobOutput)
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "output stream broke: %w", err)
	}
	return nil
}

// written distinguishes an error of the writer from one of the stream.
type written struct {
	w   io.Writer
	err error
}

func (w *written) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.err = errors.Join(w.err, err)
	return n, err
}
