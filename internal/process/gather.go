package process

import (
	"io"
	"time"
)

const (
	// quick is a wait for output so short that more is sure to come within a nap: a
	// CLI that streams.
	quick = 500 * time.Microsecond
	// nap is how long a streaming CLI is left alone before it is read again. Half
	// of it is what the median delta waits; people see nothing of it.
	nap = 1500 * time.Microsecond
	// sleep is the nap behind a flood: a CLI that says more than flood bytes in a
	// millisecond, several times what the fastest model makes it say. Nobody reads
	// along then, and each time the reader wakes costs as much as dozens of deltas.
	sleep = 5 * time.Millisecond
	flood = 1 << 10
	// brim is the output after which the CLI may be waiting for room in its pipe,
	// which holds 64 KiB: it is read on at once.
	brim = 16 << 10
)

// Gather reads a CLI that streams in fewer and larger pieces. Waking up for each
// of thousands of small writes costs many times what handling them does; while
// they come close together they are collected for a moment. Output that
// comes after a pause is read at once.
func Gather(r io.ReadCloser) io.ReadCloser { return &gather{ReadCloser: r} }

type gather struct {
	io.ReadCloser
	rest time.Duration // before the next read
}

func (g *gather) Read(b []byte) (int, error) {
	if g.rest > 0 {
		time.Sleep(g.rest)
	}
	began := time.Now()
	n, err := g.ReadCloser.Read(b)
	switch last := max(g.rest, nap); {
	case n >= min(brim, len(b)) || time.Since(began) >= quick:
		g.rest = 0
	case n > int(flood*last/time.Millisecond):
		g.rest = sleep
	default:
		g.rest = nap
	}
	return n, err
}
