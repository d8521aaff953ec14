package process_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tholehq/thole/internal/process"
)

// TestGather reads a speaker whose words are apart by pauses: it is heard at once,
// and after a moment when it floods, unless its pipe fills.
func TestGather(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		word  int           // bytes
		late  time.Duration // at most
		reads int           // of 100 words, at most
	}{
		"slow":    {10 * time.Millisecond, 250, 0, 100},
		"fast":    {2 * time.Millisecond, 250, 0, 100},
		"flood":   {400 * time.Microsecond, 250, time.Millisecond, 45},
		"torrent": {100 * time.Microsecond, 20_000, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				speaker := &speaker{began: time.Now(), pause: c.pause, word: c.word, left: 100}
				g := process.Gather(speaker)
				reads := 0
				for buf := make([]byte, 32<<10); ; reads++ {
					n, err := g.Read(buf)
					if err == io.EOF {
						break
					}
					// The oldest word of this read was said this long ago.
					if late := time.Since(speaker.began) - time.Duration(speaker.said-n/c.word+1)*c.pause; late > c.late {
						t.Errorf("read %d is %v late", reads, late)
					}
				}
				if speaker.said != 100 || reads > c.reads {
					t.Errorf("%d words in %d reads", speaker.said, reads)
				}
			})
		})
	}
}

// TestGatherAfterPause: who paused after a flood is heard at once again.
func TestGatherAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		speaker := &speaker{began: time.Now(), pause: 400 * time.Microsecond, word: 250, left: 100}
		g := process.Gather(speaker)
		buf := make([]byte, 32<<10)
		for speaker.left > 0 {
			_, _ = g.Read(buf)
		}
		speaker.began, speaker.pause, speaker.said, speaker.left = time.Now(), 20*time.Millisecond, 0, 3
		for speaker.left > 0 {
			n, _ := g.Read(buf)
			if late := time.Since(speaker.began) - time.Duration(speaker.said)*speaker.pause; n != 250 || late > 0 {
				t.Errorf("word %d is %v late", speaker.said, late)
			}
		}
	})
}

// speaker says a word after every pause; a read returns what was said so far and
// waits for the next word when there is none.
type speaker struct {
	began      time.Time
	pause      time.Duration
	word       int
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
	due = min(due, s.left, len(b)/s.word)
	s.said, s.left = s.said+due, s.left-due
	return due * s.word, nil
}

func (s *speaker) Close() error { return nil }
