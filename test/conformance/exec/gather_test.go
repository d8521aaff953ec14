//go:build linux

package exec_test

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
)

// TestSmallWritesAreGathered: a program that writes line after line costs far fewer
// messages than lines, loses none of them, and its exit comes after them.
func TestSmallWritesAreGathered(t *testing.T) {
	const lines = 20_000
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	p := mustStart(t, t.Context(), r, shell("a", `i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done`))
	messages, out := 0, strings.Builder{}
	for {
		e, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == execclient.Output {
			messages++
			out.Write(e.Data)
		}
		if e.Kind == execclient.Closed {
			break
		}
	}
	if out.String() != strings.Repeat("0123456789\n", lines) {
		t.Errorf("%d bytes", out.Len())
	}
	t.Logf("%d messages", messages)
	if messages > lines/20 {
		t.Errorf("%d messages for %d lines", messages, lines)
	}
}
