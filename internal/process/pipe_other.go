//go:build !linux

package process

import (
	"errors"
	"io"
	"os"
	"time"
)

// pipeReader is the reading end of a pipe.
type pipeReader struct{ *os.File }

func newPipe() (*pipeReader, *os.File, error) {
	r, w, err := os.Pipe()
	return &pipeReader{r}, w, err
}

// Read ends with io.EOF also when it was closed or its deadline has passed.
func (r *pipeReader) Read(b []byte) (int, error) {
	n, err := r.File.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// nap sleeps while the pipe fills.
func (r *pipeReader) nap(d time.Duration) { time.Sleep(d) }
