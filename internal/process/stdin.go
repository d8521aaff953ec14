package process

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
)

const (
	// deaf is how long a program may leave unread what it was sent.
	deaf = 30 * time.Second
	// mouthful is how much it has to take within that time.
	mouthful = 64 << 10
)

// stdin is the writing end of a program's input. Who writes holds up others, also
// those who want to stop the program; so one that hangs is killed, since half a
// message cannot be taken back.
type stdin struct {
	*os.File
	proc     *Process
	patience time.Duration
}

func (s *stdin) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		_ = s.SetWriteDeadline(time.Now().Add(s.patience)) // a closed one says so below
		var m int
		m, err = s.File.Write(b[n:min(n+mouthful, len(b))])
		n += m
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.proc.Kill()
		err = thole.Errorf(thole.CodeUnavailable, "%s has not read its input for %s: %w", filepath.Base(s.proc.path), s.patience, err)
	}
	return n, err
}
