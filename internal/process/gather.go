package process

import (
	"io"
	"time"
)

const (
	// nap is how long a CLI that writes without pause is left alone. Half of it is
	// what its words wait. What is no pipe naps by the runtime's timers, which know
	// whole milliseconds only.
	nap      = 1500 * time.Microsecond
	shortNap = time.Millisecond
	// burst is how many reads may follow one another at once before they are a nap
	// apart: what a CLI says at the beginning of a turn does not wait.
	burst = 4
	// pause is the silence after which a CLI is read at once again.
	pause = 4 * nap
	// brim is the output after which the CLI may be waiting for room in its pipe,
	// which holds 64 KiB: it is read on at once.
	brim = 16 << 10
)

// Gather reads a CLI that writes without pause in fewer and larger pieces: waking up
// for each of thousands of small writes costs many times what handling them does.
func Gather(r io.ReadCloser) io.ReadCloser {
	if p, ok := r.(*pipeReader); ok {
		return &gather{ReadCloser: r, rest: func() { p.nap(nap) }}
	}
	return &gather{ReadCloser: r, rest: func() { time.Sleep(shortNap) }}
}

type gather struct {
	io.ReadCloser
	rest   func()    // leaves the CLI alone
	floods bool      // it writes without pause
	full   bool      // the last read may have left something behind
	paid   time.Time // the reads so far are a nap apart until then
}

func (g *gather) Read(b []byte) (int, error) {
	began := time.Now()
	if g.floods && !g.full {
		g.rest()
	}
	n, err := g.ReadCloser.Read(b)
	g.full = n >= min(brim, len(b))
	now := time.Now()
	if now.Sub(began) >= pause {
		g.floods = false
	}
	if !g.floods {
		if g.paid.Before(now) {
			g.paid = now
		}
		g.paid = g.paid.Add(nap)
		g.floods = g.paid.Sub(now) > burst*nap
	}
	return n, err
}
