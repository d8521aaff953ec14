// Package watchdog ends an executord that nobody owns any more.
package watchdog

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// orphanTimeout is the default of executor.orphan_timeout.
const orphanTimeout = time.Hour

// Dog ends an executord that nobody owns any more: its home is gone, or for
// long no request came, whatever runs in it. A dispatcher that needs the executor after that
// starts it again. The owner asks for its status every minute, and every few seconds
// while it follows a turn.
type Dog struct {
	file  string // it goes with the home
	After time.Duration
	last  atomic.Int64
	every time.Duration

	lease string // see Leased; "" where any request counts
	held  int64  // when it was last renewed, by Now; of Run
}

func New(file string, after time.Duration) *Dog {
	if after <= 0 {
		after = orphanTimeout
	}
	w := &Dog{file: file, After: after, every: min(5*time.Second, after/4+1)}
	w.last.Store(time.Now().UnixNano())
	return w
}

// Leased makes only the renewals of a lease count: see Renew. Before the first one it counts
// from now.
func (w *Dog) Leased(file string) *Dog {
	w.lease, w.held = file, Now()
	return w
}

// Note records when a request came.
func (w *Dog) Note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.last.Store(time.Now().UnixNano())
		next.ServeHTTP(rw, r)
		w.last.Store(time.Now().UnixNano())
	})
}

// Run calls end when nobody owns executord any more. Who has a terminal open is
// there.
func (w *Dog) Run(ctx context.Context, attended func() bool, end func()) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if w.lease != "" {
				if w.gone() || w.expired(Now()) {
					end()
					return
				}
				continue
			}
			if w.gone() || !attended() && now.Sub(time.Unix(0, w.last.Load())) > w.After {
				end()
				return
			}
		}
	}
}

// gone reports whether the file was removed. Where a box shows it, it stays to be
// seen, without a name outside.
func (w *Dog) gone() bool {
	fi, err := os.Stat(w.file)
	if err != nil {
		return os.IsNotExist(err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}
