//go:build !linux

package providertest

import (
	"os"
	"testing"
)

// Main is TestMain of every package that runs the suite.
func Main(m *testing.M) { os.Exit(m.Run()) }

func (b *Bench) confine(yes bool) {
	if yes {
		b.Skip("there are no user namespaces here")
	}
}
