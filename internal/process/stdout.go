package process

import (
	"errors"
	"io"
	"os"
)

// stdout is the reading end of the program's pipe.
type stdout struct{ *os.File }

// Read ends with io.EOF also when it was closed or its deadline has passed. The end
// closes it: nothing else would, for a caller who only reads.
func (s *stdout) Read(b []byte) (int, error) {
	n, err := s.File.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	if err != nil {
		s.Close()
	}
	return n, err
}
