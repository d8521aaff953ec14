package process_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tholehq/thole/internal/process"
)

// TestGather reads a speaker whose writes are apart by pauses: one that is slow is
// heard at once, a fast one after a moment.
func TestGather(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		late  time.Duration // at most
		reads int           // of 50 writes, at most
	}{
		"slow": {10 * time.Millisecond, 0, 50},
		"fast": {100 * time.Microsecond, 1500 * time.Microsecond, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				speaker := &speaker{began: time.Now(), pause: c.pause, left: 50}
				g := process.Gather(speaker)
				reads := 0
				for buf := make([]byte, 64); ; reads++ {
					n, err := g.Read(buf)
					if err == io.EOF {
						break
					}
					// The oldest byte of this read was written this long ago.
					if late := time.Since(speaker.began) - time.Duration(speaker.said-n+1)*c.pause; late > c.late {
						t.Errorf("read %d is %v late", reads, late)
					}
				}
				if speaker.said != 50 || reads > c.reads {
					t.Errorf("%d bytes in %d reads", speaker.said, reads)
				}
			})
		})
	}
}

// speaker says a byte after every pause; a read returns what was said so far and
// waits for the next byte when there is none.
type speaker struct {
	began      time.Time
	pause      time.Duration
	said, left int
}

func (s *speaker) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	due := int(time.Since(s.began)/s.pause) - s.said
	if due == 0 {
		time.Sleep(time.Until(s.began.Add(time.Duration(s.said+1) * s.pause)))
		due = 1
	}
	due = min(due, s.left, len(b))
	s.said, s.left = s.said+due, s.left-due
	return due, nil
}

func (s *speaker) Close() error { return nil }
