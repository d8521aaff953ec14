// Package contract proves the commands and the clients around the thread contract
// with a real thole: scripts, listeners, and the two AI SDK providers that start
// the thole binary as if it were codex.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

func TestProvidersCompleteATurn(t *testing.T) {
	node, dir := lab.AISDK(t)
	h := home.New(t)
	h.Up()
	script, err := filepath.Abs("turn.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ai-sdk-provider-codex-cli", "ai-sdk-provider-codex-app-server"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			entry := filepath.Join(dir, "node_modules", name, "dist", "index.js")
			cmd := exec.CommandContext(ctx, node, script, entry, h.Binary, "sim: say streamed through "+name)
			cmd.Env = h.Env()
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			raw, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var got struct {
				Text   string
				Deltas int
				Finish string
				Errors []string
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatalf("%v in %s", err, raw)
			}
			if got.Text != "streamed through "+name || got.Deltas < 2 || got.Finish != "stop" || len(got.Errors) > 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}
