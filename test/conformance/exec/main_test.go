//go:build linux

package exec_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// execAs makes the test binary the helper that sets argv[0] inside a sandbox.
const execAs = "exec-as"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == execAs {
		err := syscall.Exec(os.Args[3], append([]string{os.Args[2]}, os.Args[4:]...), os.Environ())
		fmt.Fprintln(os.Stderr, err)
		os.Exit(127)
	}
	goleak.VerifyTestMain(m)
}
