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
)

// Gather reads a CLI that streams in fewer and larger pieces. Waking up for each
// of thousands of small writes costs many times what handling them does; while
// they come close together they are collected for a moment. Output that
// comes after a pause is read at once.
func Gather(r io.ReadCloser) io.ReadCloser { return &gather{ReadCloser: r} }

type gather struct {
	io.ReadCloser
	fast bool
}

func (g *gather) Read(b []byte) (int, error) {
	if g.fast {
		time.Sleep(nap)
	}
	began := time.Now()
	n, err := g.ReadCloser.Read(b)
	g.fast = time.Since(began) < quick
	return n, err
}
