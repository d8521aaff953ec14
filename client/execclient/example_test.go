//go:build linux

package execclient_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/protocol/exec"
)

// A program runs on an exec-server, which keeps its output until it was read. Here
// the server is in this process; execclient.Dial reaches one over a WebSocket and
// resumes when the connection breaks.
func Example() {
	server := execserver.New(execserver.Config{})
	defer server.Close()
	ctx := context.Background()
	c, err := execclient.Open(ctx, execclient.Options{Dial: func(context.Context) (execclient.Stream, error) {
		near, far := inproc.Pipe()
		go func() { _ = server.Serve(ctx, far) }()
		return near, nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	p, err := c.Start(ctx, exec.StartParams{
		ProcessID: "greeting", Argv: []string{"sh", "-c", `echo "hello, $WHO"; echo oops >&2; exit 3`},
		Cwd: exec.FormatURI("/"), Env: map[string]string{"PATH": "/usr/bin:/bin", "WHO": "world"},
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := p.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("stdout %q, stderr %q, exit %d\n", r.Stdout, r.Stderr, r.ExitCode)
	// Output: stdout "hello, world\n", stderr "oops\n", exit 3
}
