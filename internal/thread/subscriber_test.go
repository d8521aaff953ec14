package thread

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

func spawner(t *testing.T) func(func()) {
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	return func(f func()) { wg.Go(f) }
}

// TestSubscriberKeepsOrder runs a writer against a reader that lags and
// catches up all the time.
func TestSubscriberKeepsOrder(t *testing.T) {
	s := newSubscriber(SubscribeOptions{Buffer: 1 << 20}, spawner(t), func() {})
	const n = 20000
	go func() {
		for i := uint64(1); i <= n; i++ {
			s.push(&Batch{Events: []event.Event{{Seq: i, Kind: event.NoteReported}}})
			if i%16 == 0 {
				s.mu.Lock()
				full := s.size > maxPendingBytes/2
				s.mu.Unlock()
				if full {
					runtime.Gosched()
				}
				for full { // this test is about order, not about being slow
					s.mu.Lock()
					full = s.size > maxPendingBytes/2
					s.mu.Unlock()
					runtime.Gosched()
				}
			}
		}
		s.end(nil, true)
	}()
	next := uint64(1)
	for batch := range s.ch {
		for _, e := range batch.Events {
			if e.Seq != next {
				t.Fatalf("got %d, want %d", e.Seq, next)
			}
			next++
		}
	}
	if next != n+1 || s.failure() != nil {
		t.Fatalf("ended at %d: %v", next-1, s.failure())
	}
}

func delta(offset int64, text string) event.Event {
	return event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: "i", Stream: event.StreamText, Offset: offset, Delta: text}}
}

// TestSlowReaderMergesDeltasFirst: text is joined before the reader is given
// up, and state transitions are never dropped.
func TestSlowReaderMergesDeltasFirst(t *testing.T) {
	s := newSubscriber(SubscribeOptions{Buffer: 4}, spawner(t), func() {})
	at := int64(0)
	for range handover + 1 + 100 { // the channel, the pump's hand, and the rest
		s.push(&Batch{Events: []event.Event{delta(at, "word ")}})
		at += 5
	}
	if s.over() {
		t.Fatal("a reader with nothing but text behind was given up")
	}
	got := int64(0)
	for got < at {
		for _, e := range (<-s.ch).Events {
			if e.Data.Offset != got {
				t.Fatalf("delta at %d, want %d", e.Data.Offset, got)
			}
			got += int64(len(e.Data.Delta))
		}
	}
	s.end(nil, false)
}

func TestSlowReaderIsEndedByName(t *testing.T) {
	slow := 0
	s := newSubscriber(SubscribeOptions{Buffer: 4}, spawner(t), func() { slow++ })
	for i := range uint64(handover + 20) {
		s.push(&Batch{Events: []event.Event{{Seq: i + 1, Kind: event.NoteReported}}})
	}
	next := uint64(1)
	for batch := range s.ch {
		if batch.Events[0].Seq != next {
			t.Fatalf("got %d, want %d", batch.Events[0].Seq, next)
		}
		next++
	}
	if !errors.Is(s.failure(), ErrSlow) || next > handover+8 || slow != 1 {
		t.Fatalf("read %d, ended with %v, told %d times", next-1, s.failure(), slow)
	}
	s.push(&Batch{Events: []event.Event{{Seq: 99}}}) // after the end: nothing happens
	s.end(nil, false)
}

// TestStalledReaderCostsLittle bounds what a reader that never reads holds back.
func TestStalledReaderCostsLittle(t *testing.T) {
	s := newSubscriber(SubscribeOptions{Buffer: 1 << 20}, spawner(t), func() {})
	text := string(make([]byte, 1000))
	for i := range 10000 {
		s.push(&Batch{Events: []event.Event{delta(int64(i*1000), text)}})
	}
	if !errors.Is(s.failure(), ErrSlow) {
		t.Fatal("ten megabytes were kept for a reader that never reads")
	}
}

func TestReplayComesBeforeLive(t *testing.T) {
	s := newSubscriber(SubscribeOptions{}, spawner(t), func() {})
	gate := make(chan struct{})
	s.replay(0, 600, []event.Event{delta(0, "so far")}, func(_ context.Context, after uint64) ([]event.Event, error) {
		<-gate
		var page []event.Event
		for i := after + 1; i <= after+256; i++ { // pages may reach beyond the snapshot
			page = append(page, event.Event{Seq: i})
		}
		return page, nil
	})
	s.push(&Batch{Events: []event.Event{{Seq: 601}}})
	s.push(&Batch{Events: []event.Event{{Seq: 602}}})
	close(gate)
	next := uint64(1)
	for next <= 602 {
		for _, e := range (<-s.ch).Events {
			if e.Kind == event.ItemDelta {
				if next != 601 {
					t.Fatalf("the text so far came at %d", next)
				}
				continue
			}
			if e.Seq != next {
				t.Fatalf("got %d, want %d", e.Seq, next)
			}
			next++
		}
	}
	s.end(nil, false)
	s.end(thole.Errorf(thole.CodeInternal, "late"), false)
	if s.failure() != nil {
		t.Fatal("the first reason did not stay")
	}
}

func TestReplayThatFailsSaysWhy(t *testing.T) {
	s := newSubscriber(SubscribeOptions{}, spawner(t), func() {})
	s.replay(0, 5, nil, func(context.Context, uint64) ([]event.Event, error) { return nil, nil })
	for range s.ch {
	}
	if thole.CodeOf(s.failure()) != thole.CodeGone {
		t.Fatalf("ended with %v", s.failure())
	}
}
