//go:build linux

package keys

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// direct is a CLI in a box that speaks to its model without a gateway.
type direct struct {
	testing.TB
	name   string
	client *executorclient.Client
	grant  provider.Grant
}

func newDirect(t testing.TB, name, url string) *direct {
	t.Helper()
	cli, err := filepath.EvalSymlinks(map[string]func(testing.TB) string{"codex": lab.Codex, "claude": lab.Claude, "opencode": lab.Opencode}[name](t))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "ex") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	driver := local.New(local.Config{Root: root, Binary: lab.Thole(t), Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "gateway"}, Tools: func() local.Tools {
		return local.Tools{Readable: []string{cli}, Env: map[string]string{config.Variable("providers." + name): cli}}
	}})
	id := thole.NewID[thole.ExecutorID](time.Now())
	t.Cleanup(func() {
		if err := driver.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
		os.RemoveAll(root)
	})
	if err := driver.Create(t.Context(), executor.Spec{ID: id, Thread: "thread", Scope: executor.ScopeThread}); err != nil {
		t.Fatal(err)
	}
	info, err := driver.Start(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	d := &direct{TB: t, name: name, client: executorclient.Dial(info.Endpoint, info.Token)}
	t.Cleanup(func() { d.client.Close() })
	d.grant = d.key(url)
	return d
}

// key leads the CLI to a model with a key of its own.
func (d *direct) key(url string) provider.Grant {
	d.Helper()
	env := map[string][]string{"claude": modelsim.ClaudeEnv(url), "opencode": modelsim.OpencodeEnv(url)}[d.name]
	g := provider.Grant{Env: map[string]string{}, Config: map[string][]byte{}}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		g.Env[name] = value
	}
	if d.name != "codex" {
		g.Env["CLAUDE_CODE_MAX_RETRIES"] = "2" // else it tries again for minutes
		return g
	}
	dir := d.TempDir()
	if err := modelsim.CodexConfig(dir, url); err != nil {
		d.Fatal(err)
	}
	for from, to := range map[string]string{"config.toml": "config.toml", "sim-models.json": codex.Laid + "/sim-models.json"} {
		text, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			d.Fatal(err)
		}
		g.Config[to] = []byte(strings.ReplaceAll(string(text), dir+"/", codex.Laid+"/"))
	}
	return g
}

// play takes a prompt to its end and returns what became of it.
func (d *direct) play(prompt string) (out outcome) {
	d.Helper()
	req := wire.RunRequest{
		Turn: provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Text(prompt), Settings: event.Settings{Profile: thole.ProfileFull}},
		For:  thole.NewID[thole.TurnID](time.Now()), Thread: "thread", Provider: d.name, Grant: d.grant,
		Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileFull, Model: models[d.name]}},
	}
	if _, err := d.client.Run(d.Context(), req); err != nil {
		d.Fatal(err)
	}
	var last event.Event
	step := 0 // where the words of the newest model call begin
	err := d.client.Events(d.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
		for _, e := range batch {
			last = e.Event
			switch {
			case last.Kind == event.StepStarted:
				step = len(out.said)
			case last.Kind == event.StepReset: // what the call said does not count
				out.said = out.said[:step]
			case last.Kind == event.ItemCompleted && last.Item.Kind == event.ItemMessage:
				out.said += last.Item.Text
			}
		}
		return nil
	})
	if err != nil {
		d.Fatal(err)
	}
	out.outcome = string(last.Outcome)
	if last.Error != nil {
		out.code, out.status, out.text = string(last.Error.Code), last.Error.Status, last.Error.Message
	}
	return out
}

// outcome is what a person sees of a turn.
type outcome struct {
	outcome, code string
	status        int
	text, said    string
}
