package base

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// TestTurnLock: one at a time acts, nobody after the end, and Wait returns after the last.
func TestTurnLock(t *testing.T) {
	l := NewTurnLock()
	acts, inside := 0, 0 // unguarded but by the lock: the race detector looks on
	act := func() error {
		if inside++; inside > 1 {
			t.Error("two act at once")
		}
		acts++
		inside--
		return nil
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for l.Do(context.Background(), act) == nil {
			}
		})
	}
	cut, cancel := context.WithCancel(context.Background())
	l.Act(func() {
		cancel()
		if err := l.Do(cut, act); !errors.Is(err, context.Canceled) {
			t.Errorf("do while another acts: %v", err)
		}
	})
	l.Stop()
	l.Stop()
	stops := 0
	ended := l.Wait(context.Background(), nil, time.Minute, func(grace time.Duration) {
		stops++
		if grace != time.Minute {
			t.Errorf("grace %v", grace)
		}
		l.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
		l.End(provider.Ended{Outcome: thole.OutcomeFailed})
		_ = act() // the holder that ended it may go on until it returns
	}, func() { t.Error("it is not lost") })
	before := acts
	wg.Wait()
	if ended.Outcome != thole.OutcomeInterrupted || stops != 1 || acts != before || l.Act(func() {}) {
		t.Errorf("ended %+v, %d stops, %d acts after %d", ended, stops, acts, before)
	}
}

// TestAlarm rings once, when nothing has put it off for that long.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewTurnLock()
		began := time.Now()
		var rang []time.Duration
		a := l.NewAlarm(func() { rang = append(rang, time.Since(began)) })
		at := func(when time.Duration, do func()) {
			time.Sleep(when - time.Since(began))
			l.Act(do)
		}
		at(0, func() { a.Set(10 * time.Second) })
		at(5*time.Second, func() { a.Set(10 * time.Second) })  // later
		at(12*time.Second, func() { a.Set(10 * time.Second) }) // later, after the first time it was set to
		at(13*time.Second, func() { a.Set(4 * time.Second) })  // sooner
		at(30*time.Second, func() { a.Set(10 * time.Second) })
		at(35*time.Second, func() { a.Off() })
		at(60*time.Second, func() { a.Set(time.Second) })
		at(62*time.Second, func() {
			if a.On() {
				t.Error("it is on after it rang")
			}
			a.Set(time.Second)
			l.End(provider.Ended{})
		})
		time.Sleep(time.Minute)
		if len(rang) != 2 || rang[0] != 17*time.Second || rang[1] != 61*time.Second {
			t.Errorf("rang at %v", rang)
		}
	})
}
