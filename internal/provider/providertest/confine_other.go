//go:build !linux

package providertest

import (
	"os"
	"testing"
)

// Main is TestMain of every package that runs the suite.
func Main(m *testing.M) {
	if os.Getenv(mcpVar) != "" {
		serveMCP()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func (b *Bench) confine(yes bool) {
	if yes {
		b.Skip("there are no user namespaces here")
	}
}
