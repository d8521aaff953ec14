package registry

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowHarness: a socket that takes a frame now and then, to keep the executor's other
// streams waiting, is given up; one that takes enough is not. Where a byte is enough, the
// waiting never ends.
func TestSlowHarness(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		drain int // 0 is the default
		lost  bool
	}{{9 * time.Second, 0, true}, {3 * time.Second, 0, true}, {2 * time.Second, 0, false}, {9 * time.Second, 1, false}} {
		synctest.Test(t, func(t *testing.T) {
			var all atomic.Int64
			s := &socket{lim: Limits{Drain: c.drain}.withDefaults(), all: &all, more: make(chan struct{}, 1), less: make(chan struct{}, 1)}
			s.ctx, s.end = context.WithCancel(t.Context())
			frame := make([]byte, 256<<10)
			var peer sync.WaitGroup
			peer.Go(func() {
				for s.ctx.Err() == nil {
					<-time.After(c.every)
					s.taken(len(frame))
					signal(s.less)
				}
			})
			began, kept := time.Now(), true
			for kept && time.Since(began) < time.Hour {
				kept = s.put(frame)
			}
			if kept == c.lost || c.lost && time.Since(began) > 2*time.Minute {
				t.Errorf("a frame every %v, %d bytes are enough: kept %v after %v", c.every, s.lim.Drain, kept, time.Since(began))
			}
			s.end()
			peer.Wait()
		})
	}
}

// TestMemoryOfAllSockets: peers that take nothing make the relay hold a bounded amount, a
// socket among them still gets its share, and what a socket held is given back.
func TestMemoryOfAllSockets(t *testing.T) {
	var all atomic.Int64
	lim := Limits{Queue: 8 << 20, Memory: 4 << 20, Stuck: time.Millisecond}.withDefaults()
	open := func() *socket {
		s := &socket{lim: lim, all: &all, more: make(chan struct{}, 1), less: make(chan struct{}, 1)}
		s.ctx, s.end = context.WithCancel(t.Context())
		return s
	}
	fill := func(s *socket) (n int) {
		for s.put(make([]byte, 64<<10)) {
			n += 64 << 10
		}
		return n
	}
	greedy, modest := open(), open()
	if n := fill(greedy); n != lim.Memory {
		t.Errorf("%d bytes wait, the bound is %d", n, lim.Memory)
	}
	if n := fill(modest); n != share {
		t.Errorf("another one got %d bytes, its share is %d", n, share)
	}
	if !open().put(make([]byte, 2*share)) {
		t.Error("one frame always fits")
	}
	greedy.forget()
	if greedy.put([]byte("x")) {
		t.Error("a socket that has ended took a frame")
	}
	if n := fill(modest); n == 0 {
		t.Error("there is room again, and none was given")
	}
	modest.forget()
	if left := all.Load(); left != 2*share {
		t.Errorf("%d bytes are counted, one socket has %d", left, 2*share)
	}
}
