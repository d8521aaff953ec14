package provider_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"syscall"
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

// What ends an executor signals its command first, now and then: that is no end of the
// command.
func TestASignalToAllIsNoEnd(t *testing.T) {
	for name, line := range map[string]string{"the shell": "echo $$; kill -TERM $$", "its program": "sh -c 'echo $$; kill -TERM $$'"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last event.Event
			provider.RunShell(ctx, "turn", line, t.TempDir(), map[string]string{"PATH": "/usr/bin:/bin"}, nil, func(e event.Event) {
				if pid, err := strconv.Atoi(strings.TrimSpace(e.Delta)); err == nil {
					go func() {
						for syscall.Kill(pid, 0) == nil { // until it is gone
							runtime.Gosched()
						}
						cancel()
					}()
				}
				last = e
			})
			if last.Kind != event.TurnEnded || last.Outcome != thole.OutcomeInterrupted {
				t.Errorf("ended with %+v", last)
			}
		})
	}
}
