package claude_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
)

// A CLI that got ready and then misbehaves: the turn ends, with the reason, and the
// CLI with it.
func TestTurnOfACLIThatMisbehaves(t *testing.T) {
	const ready = `#!/bin/bash
for n in 1 2; do
	read -r line
	echo '{"type":"control_response","response":{"subtype":"success","request_id":"thole-'$n'","response":{}}}'
done
read -r line
`
	for _, row := range []struct{ name, then, why string }{
		{"closes its output and lives on", "exec >&-\ntrap '' TERM\nwhile :; do sleep 300; done", "claude"},
		{"ends without a word", "exit 0", "code 0"},
		{"leaves half a line", `printf '{"type":"res'`, "code 0"},
		{"writes what is no message", `printf '\377\376\0\n[]\nnull\n"x"\n{"type":7}\n{"type":"of tomorrow","x":[]}\n{}\n'; exit 3`, "status 3"},
		{"writes a line without end", "trap '' TERM PIPE\nhead -c 80000000 /dev/zero | tr '\\0' x\nwhile :; do sleep 300; done", "longer than"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "claude")
			if err := os.WriteFile(script, []byte(ready+row.then+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			s, err := claude.New(claude.Config{Binary: script}).Open(context.Background(), provider.SessionConfig{Thread: "t", Dir: t.TempDir(), Data: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			over := make(chan *provider.Ended, 1)
			go func() {
				var ended *provider.Ended
				if err := s.Run(context.Background(), provider.Turn{ID: "turn", Input: thole.Text("hello")}, func(ev event.Event) {
					if ev.Kind == event.TurnEnded {
						end := provider.EndedOf(ev)
						ended = &end
					}
				}); err != nil {
					t.Error(err)
				}
				over <- ended
			}()
			select {
			case ended := <-over:
				if ended == nil || ended.Outcome != thole.OutcomeFailed || ended.Error.Code != thole.ErrProviderCrashed || !strings.Contains(ended.Error.Message, row.why) {
					t.Errorf("ended with %+v, %+v", ended, ended.Error)
				}
			case <-time.After(time.Minute):
				t.Fatal("the turn never ended")
			}
		})
	}
}
