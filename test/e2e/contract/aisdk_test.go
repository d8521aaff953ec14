// Package contract proves the commands and the clients around the thread contract
// with a real thole: scripts, listeners, and the two AI SDK providers that start
// the thole binary as if it were codex.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// aiProviders are the npm packages that drive an app-server.
var aiProviders = []string{"ai-sdk-provider-codex-cli", "ai-sdk-provider-codex-app-server"}

// aiWish is what turn.mjs is to do.
type aiWish struct {
	Model  string          `json:"model"`
	Prompt string          `json:"prompt"`
	Image  string          `json:"image,omitempty"`
	As     string          `json:"as,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Tool   bool            `json:"tool,omitempty"`
}

type aiAnswer struct {
	Text   string
	Deltas int
	Finish string
	Errors []string
	Pid    int
}

// ai runs one turn through an AI SDK provider.
func ai(t *testing.T, h *home.Home, name string, wish aiWish) (got aiAnswer) {
	t.Helper()
	node, dir := lab.AISDK(t)
	script, err := filepath.Abs("turn.mjs")
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(wish)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script, filepath.Join(dir, "node_modules", name, "dist", "index.js"), h.Binary, string(body))
	cmd.Env = h.Env()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return got
}

func TestProvidersCompleteATurn(t *testing.T) {
	h := home.New(t)
	h.Up()
	for _, name := range aiProviders {
		t.Run(name, func(t *testing.T) {
			got := ai(t, h, name, aiWish{Model: "test/script", Prompt: "sim: say streamed through " + name})
			if got.Text != "streamed through "+name || got.Deltas < 2 || got.Finish != "stop" || len(got.Errors) > 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Both providers have each real agent call a tool of the program, look at an image and
// answer by a schema, as generateObject does.
func TestProvidersWithEachAgent(t *testing.T) {
	lab.AISDK(t)
	picture := filepath.Join(t.TempDir(), "picture.png")
	var body bytes.Buffer
	if err := png.Encode(&body, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(picture, body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	schema := json.RawMessage(`{"type":"object","properties":{"seen":{"type":"string"},"people":{"type":"integer"}},"required":["seen","people"],"additionalProperties":false}`)
	ways := map[string][2]string{"codex": {"bytes", "url"}, "claude": {"bytes", "file"}, "opencode": {"bytes", "url"}}
	for name, a := range realAgents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := home.New(t)
			h.Vars = []string{a.variable + "=" + a.path}
			h.Up()
			for i, provider := range aiProviders {
				got := ai(t, h, provider, aiWish{Model: a.model, Prompt: `sim: give {"seen":"%images%","people":97000}`, Schema: schema, Image: picture, As: ways[name][i]})
				var object struct {
					Seen   string
					People int
				}
				err := json.Unmarshal([]byte(got.Text), &object)
				if err != nil || object.People != 97000 || got.Finish != "stop" || len(got.Errors) > 0 {
					t.Errorf("%s: %v in %+v", provider, err, got)
				}
				if want := fmt.Sprintf("image/png of %d bytes", body.Len()); object.Seen != want {
					t.Errorf("%s as %s: the model saw %q, want %q", provider, ways[name][i], object.Seen, want)
				}
				got = ai(t, h, provider, aiWish{Model: a.model, Prompt: "sim: call " + a.prefix + `shop__price {"of":"tea"} ;; say told: %tool%`, Tool: true})
				if want := fmt.Sprintf("tea costs two coins, says process %d", got.Pid); !strings.Contains(got.Text, want) || got.Finish != "stop" || len(got.Errors) > 0 {
					t.Errorf("%s: the tool's answer is %q; got %+v", provider, want, got)
				}
			}
		})
	}
}
