// Package backoff is how long to wait before the next try. It does not know what is
// tried nor whether trying again helps: its callers decide that, and it only counts
// and waits.
package backoff

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// Policy doubles a pause from Min to Max.
type Policy struct {
	Min, Max time.Duration
	Jitter   Jitter
}

// Jitter keeps those apart who failed together.
type Jitter int

const (
	None Jitter = iota
	Half        // between half of the pause and all of it
	Full        // between nothing and all of it
)

// After is the pause after the n-th failure in a row, from 1, before jitter.
func (p Policy) After(n int) time.Duration {
	d := p.Min
	for ; n > 1 && d < p.Max; n-- {
		d *= 2
	}
	return min(d, p.Max)
}

// Backoff counts failures in a row. It is for one goroutine.
type Backoff struct {
	p Policy
	n int
}

// Begin has seen no failure yet.
func (p Policy) Begin() *Backoff { return &Backoff{p: p} }

// Next is the pause after one more failure.
func (b *Backoff) Next() time.Duration {
	b.n++
	d := b.p.After(b.n)
	switch {
	case b.p.Jitter == None || d < 2:
		return d
	case b.p.Jitter == Half:
		return d/2 + rand.N(d/2)
	}
	return rand.N(d)
}

// Reset forgets the failures: something worked.
func (b *Backoff) Reset() { b.n = 0 }

// Wait sleeps after one more failure; an error is the reason why ctx ended.
func (b *Backoff) Wait(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Tries yields 1, 2 and so on up to max (0: without end), with a pause between one
// and the next, and ends early with ctx.
func (p Policy) Tries(ctx context.Context, max int) iter.Seq[int] {
	return func(yield func(int) bool) {
		b := p.Begin()
		for n := 1; yield(n); n++ {
			if n == max || b.Wait(ctx) != nil {
				return
			}
		}
	}
}

// Sleep waits; an error is the reason why ctx ended before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
