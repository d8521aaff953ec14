package cli

import (
	"fmt"
	"os"
	"testing"
)

// A command that wants an owner starts this program as one; the tests must not run
// again in it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "daemon" {
		fmt.Fprintln(os.Stderr, "a test of the command line started an owner")
		os.Exit(1)
	}
	os.Exit(m.Run())
}
