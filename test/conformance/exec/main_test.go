//go:build linux

package exec_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/version"
)

// execAs makes the test binary the helper that sets argv[0] inside a sandbox.
const execAs = "exec-as"

// serveStdioArg makes the test binary an exec-server on its standard streams.
const serveStdioArg = "serve-stdio"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == execAs {
		err := syscall.Exec(os.Args[3], append([]string{os.Args[2]}, os.Args[4:]...), os.Environ())
		fmt.Fprintln(os.Stderr, err)
		os.Exit(127)
	}
	if len(os.Args) > 2 && os.Args[1] == attackArg {
		runtime.LockOSThread()
		if err := runAttack(os.Args[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == serveStdioArg {
		srv := execserver.New(execserver.Config{Version: version.Codex})
		_ = srv.Serve(context.Background(), stdio.New(os.Stdin, struct{ io.Writer }{os.Stdout}, 0))
		srv.Close()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
