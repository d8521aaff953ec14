package identity

import (
	"fmt"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/unguarded"
)

// What may fail in a minute: of one login from one address, of one address, and of one
// login from all of them, so that neither many logins nor many addresses help.
const (
	triesOfBoth    = 5
	triesOfAddress = 60
	triesOfLogin   = 60
	window         = time.Minute
	maxTried       = 10_000
)

// TooMany refuses a login for a while.
type TooMany struct{ After time.Duration }

func (e *TooMany) Error() string {
	return fmt.Sprintf("too many logins failed; the next one is looked at in %d s", e.Seconds())
}

// Seconds is After in whole seconds, at least one.
func (e *TooMany) Seconds() int { return max(1, int((e.After+time.Second-1)/time.Second)) }

// throttle counts failed logins in windows that begin with the first of them.
type throttle struct {
	mu    sync.Mutex
	tries map[string]*tried
}

type tried struct {
	since time.Time
	n     int
}

// take counts a try that is about to be made, or says how long to wait. A login that
// succeeds gives it back.
func (t *throttle) take(login, address string, now time.Time) (giveBack func(), wait time.Duration) {
	limits := map[string]int{"both\x00" + login + "\x00" + address: triesOfBoth, "address\x00" + address: triesOfAddress, "login\x00" + login: triesOfLogin}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tries == nil {
		t.tries = map[string]*tried{}
	}
	if len(t.tries) > maxTried {
		for key, v := range t.tries {
			if !now.Before(v.since.Add(window)) {
				delete(t.tries, key)
			}
		}
	}
	if len(t.tries) > maxTried { // of an attack: nobody is let through faster by it
		return nil, window
	}
	for key, limit := range limits {
		v := t.tries[key]
		if v == nil || !now.Before(v.since.Add(window)) {
			t.tries[key] = &tried{since: now}
			continue
		}
		if v.n >= limit {
			wait = max(wait, v.since.Add(window).Sub(now))
		}
	}
	if wait > 0 && !unguarded.Build {
		return nil, wait
	}
	for key := range limits {
		t.tries[key].n++
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for key := range limits {
			if v := t.tries[key]; v != nil && v.n > 0 {
				v.n--
			}
		}
	}, 0
}
