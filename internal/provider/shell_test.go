package provider_test

import (
	"context"
	"testing"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// A command's two streams are one text; a rune that comes in two pieces stays
// whole; the environment is the one that was given.
func TestRunShell(t *testing.T) {
	for name, c := range map[string]struct {
		line, out string
		code      int
	}{
		"both streams": {"echo out; echo err >&2; exit 3", "out\nerr\n", 3},
		"half a rune":  {`printf 'caf\303'; sleep 0.2; printf '\251'`, "café", 0},
		"no rune":      {`printf 'a\377b'`, "a\uFFFDb", 0},
		"environment":  {"echo $WHO$HOME", "me\n", 0},
		"no command":   {"thole-has-no-such-command 2>/dev/null", "", 127},
	} {
		t.Run(name, func(t *testing.T) {
			var deltas string
			var last event.Event
			var item *event.Item
			provider.RunShell(context.Background(), "turn", c.line, t.TempDir(), map[string]string{"WHO": "me", "PATH": "/usr/bin:/bin"}, nil, func(e event.Event) {
				if !utf8.ValidString(e.Delta) {
					t.Errorf("delta %q", e.Delta)
				}
				deltas += e.Delta
				if e.Kind == event.ItemCompleted {
					item = e.Item
				}
				last = e
			})
			if last.Kind != event.TurnEnded || last.Outcome != thole.OutcomeCompleted || item == nil {
				t.Fatalf("ended with %+v", last)
			}
			if cmd := item.Command; cmd.Output != c.out || deltas != c.out || *cmd.ExitCode != c.code || !cmd.User {
				t.Errorf("told %q and %+v, want %q and %d", deltas, *cmd, c.out, c.code)
			}
		})
	}
}
