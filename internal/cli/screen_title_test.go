package cli

import (
	"strings"
	"testing"
	"time"
)

// The end of a turn that took long rings, and the title that was there comes back; where
// nobody sits nothing is written.
func TestTitleBar(t *testing.T) {
	var out strings.Builder
	b := &titleBar{tty: &out, since: time.Now().Add(-time.Hour)}
	b.set("codex\x1b]0;mine\a works")
	b.end(true)
	if got := out.String(); strings.Count(got, "\a") != 2 || strings.Contains(got, "]0;mine") && strings.Contains(got, "\x1b]0") || !strings.HasPrefix(got, "\x1b[22;2t\x1b]2;thole: codex") || !strings.HasSuffix(got, "\x1b[23;2t") {
		t.Errorf("a long turn: %q", got)
	}
	out.Reset()
	b = &titleBar{tty: &out, since: time.Now()}
	b.end(true)
	b = &titleBar{since: time.Now().Add(-time.Hour)}
	b.set("works")
	b.ring()
	b.end(true)
	if out.Len() > 0 {
		t.Errorf("a short turn, and nobody: %q", out.String())
	}
}
