package process

import (
	"io"
	"time"
)

const (
	// flood is how many reads in a millisecond make one: a thousand deltas a second,
	// more than the fastest model makes a CLI say. Nobody reads along then, and each
	// time the reader wakes costs as much as a dozen deltas.
	flood = 1
	// trickle is the output in bytes a millisecond, about half a delta, below which a
	// flood has ended.
	trickle = 128
	// look is the least time over which reads are counted: a handful of messages
	// written at once is no flood.
	look = 4 * time.Millisecond
	// nap is how long a CLI that floods is left alone.
	nap = 5 * time.Millisecond
	// brim is the output after which the CLI may be waiting for room in its pipe,
	// which holds 64 KiB: it is read on at once.
	brim = 16 << 10
)

// Gather reads a CLI that floods in fewer and larger pieces: waking up for each of
// thousands of small writes costs many times what handling them does. Any other
// output is read at once.
func Gather(r io.ReadCloser) io.ReadCloser { return &gather{ReadCloser: r, since: time.Now()} }

type gather struct {
	io.ReadCloser
	floods bool
	full   bool      // the last read may have left something behind
	since  time.Time // what was read since then, and how often
	sum    int
	reads  int
}

func (g *gather) Read(b []byte) (int, error) {
	if g.floods && !g.full {
		time.Sleep(nap)
	}
	n, err := g.ReadCloser.Read(b)
	g.full = n >= min(brim, len(b))
	g.sum += n
	g.reads++
	now := time.Now()
	took := now.Sub(g.since)
	if took < look {
		return n, err
	}
	if ms := took.Seconds() * 1e3; g.floods {
		g.floods = float64(g.sum) >= trickle*ms
	} else {
		g.floods = float64(g.reads) > flood*ms
	}
	g.since, g.sum, g.reads = now, 0, 0
	return n, err
}
