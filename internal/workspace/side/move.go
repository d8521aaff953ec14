package side

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/objects"
)

// tries is how often one object is moved before the whole call fails.
const tries = 5

// refusedError is an answer of the store that repeating does not change.
type refusedError struct {
	status int
	body   string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("object store answered %d: %s", e.status, e.body)
}

// again repeats a transfer that failed for a reason that may pass, or that stood
// still: do says whenever something moved.
func (l *Local) again(ctx context.Context, do func(ctx context.Context, moved func()) error) error {
	failed := backoff.Policy{Min: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: backoff.Half}.Begin()
	for n := 1; ; n++ {
		try, stop := context.WithCancelCause(ctx)
		stall := time.AfterFunc(l.cfg.Patience, func() { stop(errStalled) })
		err := do(try, func() { stall.Reset(l.cfg.Patience) })
		stall.Stop()
		if err != nil && ctx.Err() == nil && errors.Is(context.Cause(try), errStalled) {
			err = errStalled
		}
		stop(nil)
		var refused *refusedError
		if err == nil || ctx.Err() != nil || errors.As(err, &refused) || errors.Is(err, errFinal) || n == tries {
			return err
		}
		if err := failed.Wait(ctx); err != nil {
			return err
		}
	}
}

var errStalled = thole.Errorf(thole.CodeUnavailable, "the object store stood still in the middle of a transfer")

// moving says of every read that something moved.
type moving struct {
	io.Reader
	moved func()
}

func (m moving) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.moved()
	return n, err
}

// errFinal marks an error on our side of a transfer, such as a full disk.
var errFinal = errors.New("workspace: repeating does not help")

// put stores what open returns under a link and returns the store's ETag.
func (l *Local) put(ctx context.Context, link objects.Link, size int64, open func() (io.Reader, error)) (etag string, err error) {
	err = l.again(ctx, func(ctx context.Context, moved func()) error {
		body, err := open()
		if err != nil {
			return errors.Join(errFinal, err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, link.URL, io.NopCloser(moving{body, moved}))
		if err != nil {
			return errors.Join(errFinal, err)
		}
		req.ContentLength = size
		if size == 0 {
			req.Body = http.NoBody
		}
		for k, v := range link.Headers {
			req.Header.Set(k, v)
		}
		resp, err := l.cfg.Client.Do(req)
		if err != nil {
			return thole.Errorf(thole.CodeUnavailable, "store object: %w", unlinked(err))
		}
		defer resp.Body.Close()
		etag = resp.Header.Get("ETag")
		return answer(resp)
	})
	return etag, err
}

// get reads n bytes from off through a link, with n < 0 all of them, and hands
// them to read. A broken stream is read again from the start.
func (l *Local) get(ctx context.Context, link objects.Link, off, n int64, read func(io.Reader) error) error {
	return l.again(ctx, func(ctx context.Context, moved func()) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, link.URL, nil)
		if err != nil {
			return errors.Join(errFinal, err)
		}
		for k, v := range link.Headers {
			req.Header.Set(k, v)
		}
		if n >= 0 {
			req.Header.Set("Range", "bytes="+strconv.FormatInt(off, 10)+"-"+strconv.FormatInt(off+n-1, 10))
		}
		resp, err := l.cfg.Client.Do(req)
		if err != nil {
			return thole.Errorf(thole.CodeUnavailable, "read object: %w", unlinked(err))
		}
		defer resp.Body.Close()
		if err := answer(resp); err != nil {
			return err
		}
		if n >= 0 && resp.StatusCode != http.StatusPartialContent {
			return &refusedError{resp.StatusCode, "a range was asked for and not given"}
		}
		return read(moving{resp.Body, moved})
	})
}

func answer(resp *http.Response) error {
	if resp.StatusCode/100 == 2 {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout {
		return thole.Errorf(thole.CodeUnavailable, "object store answered %s: %s", resp.Status, body)
	}
	return &refusedError{resp.StatusCode, string(body)}
}

// unlinked drops the link from an error: it is a permission and ends up in logs.
func unlinked(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
