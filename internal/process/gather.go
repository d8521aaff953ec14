package process

import (
	"io"
	"time"
)

const (
	// flood is the output in bytes a millisecond from which on a CLI is left alone:
	// two deltas, more than the fastest model makes it say. Nobody reads along then,
	// and each time the reader wakes costs as much as dozens of deltas.
	flood = 512
	// look is the least time over which the output is counted: a handful of messages
	// written at once is no flood.
	look = 2 * time.Millisecond
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
	rest  time.Duration // before the next read
	since time.Time     // what was read since then
	sum   int
}

func (g *gather) Read(b []byte) (int, error) {
	if g.rest > 0 {
		time.Sleep(g.rest)
	}
	n, err := g.ReadCloser.Read(b)
	g.sum += n
	now := time.Now()
	took := now.Sub(g.since)
	bound := flood * int(max(took, look)) / int(time.Millisecond)
	switch {
	case n >= min(brim, len(b)):
		g.rest = 0
		return n, err
	case g.sum > bound:
		g.rest = nap
	case took < look:
		return n, err
	case g.sum <= bound/2: // a flood has ended when it is half of one
		g.rest = 0
	}
	g.since, g.sum = now, 0
	return n, err
}
