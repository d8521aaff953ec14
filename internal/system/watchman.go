package system

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// lonely is how long executord waits for its owner to come back. Whoever needs
// the executor after that starts it again.
const lonely = 30 * time.Minute

// watchman ends an executord that nobody owns any more: its home is gone, or for
// long neither a request came nor a turn ran. The owner asks for its status every
// minute.
type watchman struct {
	file  string // it goes with the home
	last  atomic.Int64
	every time.Duration
}

func newWatchman(file string) *watchman {
	w := &watchman{file: file, every: 5 * time.Second}
	w.last.Store(time.Now().UnixNano())
	return w
}

// note remembers that somebody asked.
func (w *watchman) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.last.Store(time.Now().UnixNano())
		next.ServeHTTP(rw, r)
		w.last.Store(time.Now().UnixNano())
	})
}

func (w *watchman) run(ctx context.Context, busy func() bool, end func()) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if w.gone() || !busy() && now.Sub(time.Unix(0, w.last.Load())) > lonely {
				end()
				return
			}
		}
	}
}

// gone reports whether the file was removed. Where a box shows it, it stays to be
// seen, without a name outside.
func (w *watchman) gone() bool {
	fi, err := os.Stat(w.file)
	if err != nil {
		return os.IsNotExist(err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}
