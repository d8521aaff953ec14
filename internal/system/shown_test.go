package system

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/registry"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// A box shows an agent's CLI and nothing that lies next to it, however it was
// installed: not the user's keyring, not thole's socket. The CLI runs inside.
func TestABoxShowsTheCLIAlone(t *testing.T) { lab.EveryUser(t, boxShowsTheCLIAlone) }

func boxShowsTheCLIAlone(t *testing.T) {
	bwrap, binary := lab.Bwrap(t), lab.Thole(t)
	platform := "@maker/tool-" + provider.NodePlatform()
	const script = "#!/usr/bin/env node\nconsole.log(require('PLATFORM/said.js') + require('helper'))\n"
	tool := map[string]string{
		"@maker/tool/cli.js":       "!" + strings.Replace(script, "PLATFORM", platform, 1),
		"@maker/tool/package.json": `{"name":"@maker/tool","dependencies":{"helper":"1","absent":"1","../../..":"1"},"optionalDependencies":{"` + platform + `":"1"}}`,
	}
	deps := map[string]string{
		platform + "/said.js": "module.exports = 'version '", platform + "/package.json": `{"name":"` + platform + `"}`,
		"helper/index.js": "module.exports = 'seven'", "helper/package.json": `{"name":"helper"}`,
	}
	for name, c := range map[string]struct {
		lay func(l *layout)
		run string // below the user's home
	}{
		"npm global": {func(l *layout) {
			l.put(".local/lib/node_modules", tool, deps)
			l.link(".local/bin/tool", "../lib/node_modules/@maker/tool/cli.js")
		}, ".local/bin/tool"},
		"npm global, nested": {func(l *layout) {
			l.put(".local/lib/node_modules", tool)
			l.put(".local/lib/node_modules/@maker/tool/node_modules", deps)
			l.link(".local/bin/tool", "../lib/node_modules/@maker/tool/cli.js")
		}, ".local/bin/tool"},
		"npm --prefix home": {func(l *layout) {
			l.put("node_modules", tool, deps)
			l.link("node_modules/.bin/tool", "../@maker/tool/cli.js")
		}, "node_modules/.bin/tool"},
		"nvm": {func(l *layout) {
			l.put(".nvm/versions/node/v20/lib/node_modules", tool, deps)
			l.copy("/usr/bin/node", ".nvm/versions/node/v20/bin/node")
			l.link(".nvm/versions/node/v20/bin/tool", "../lib/node_modules/@maker/tool/cli.js")
		}, ".nvm/versions/node/v20/bin/tool"},
		"pnpm": {func(l *layout) {
			at := ".local/share/pnpm/global/5/node_modules"
			l.put(at+"/.pnpm/tool@1/node_modules", tool)
			l.put(at+"/.pnpm/deps@1/node_modules", deps)
			for dep, up := range map[string]string{platform: "../../../", "helper": "../../"} {
				l.link(at+"/.pnpm/tool@1/node_modules/"+dep, up+"deps@1/node_modules/"+dep)
			}
			l.link(at+"/@maker/tool", "../.pnpm/tool@1/node_modules/@maker/tool")
			l.link(".local/bin/tool", "../share/pnpm/global/5/node_modules/@maker/tool/cli.js")
		}, ".local/bin/tool"},
		"a plain program": {func(l *layout) { l.copy("/bin/echo", ".local/bin/tool") }, ".local/bin/tool"},
		"a shell script": {func(l *layout) {
			l.put(".local/bin", map[string]string{"tool": "!#!/bin/sh\necho version seven\n"})
		}, ".local/bin/tool"},
		"a linked program": {func(l *layout) {
			l.copy("/bin/echo", ".local/share/tool/versions/7")
			l.link(".local/bin/tool", "../share/tool/versions/7")
		}, ".local/bin/tool"},
		"codex from npm": {func(l *layout) {
			at := ".local/lib/node_modules/@openai/codex/vendor/x/bin/codex"
			l.same(lab.Codex(l.T), at)
			l.put(".local/lib/node_modules/@openai/codex", map[string]string{"package.json": `{"name":"@openai/codex"}`})
			l.link(".local/bin/codex", "../lib/node_modules/@openai/codex/vendor/x/bin/codex")
		}, ".local/bin/codex"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			c.lay(l)
			for _, canary := range l.canaries() {
				l.put(filepath.Dir(canary), map[string]string{filepath.Base(canary): "canary"})
			}
			ln, err := net.Listen("unix", filepath.Join(l.home, ".thole/thole.sock"))
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			r := registry.New([]provider.Provider{found{name: "codex", binary: filepath.Join(l.home, c.run)}}, nil, slog.New(slog.DiscardHandler))
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer r.Stop(t.Context())
			d := local.New(local.Config{Root: filepath.Join(l.home, ".thole/x"), Binary: binary, Bwrap: bwrap,
				Tools: func() local.Tools { return local.Tools{Readable: r.Binaries(), Env: located(r)} }})
			got := inside(t, d, r.Paths()["codex"]+" --version 2>&1; cat $(find "+l.home+" -name 'canary*' 2>/dev/null) </dev/null; find "+l.home+" -type s; echo end")
			if strings.Contains(got, "canary") || strings.Contains(got, "thole.sock") || !strings.HasSuffix(got, "end\n") {
				t.Errorf("inside: %q", got)
			}
			if !strings.Contains(got, "version seven") && !strings.Contains(got, "coreutils") && !strings.Contains(got, lab.CodexVersion) {
				t.Errorf("the CLI does not run: %q; shown %v", got, r.Binaries())
			}
		})
	}
}

// inside runs a command in an executor of its own.
func inside(t *testing.T, d *local.Driver, line string) string {
	t.Helper()
	id := thole.NewID[thole.ExecutorID](time.Now())
	if err := d.Create(t.Context(), executor.Spec{ID: id, Thread: "thread"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Remove(context.Background(), id) })
	info, err := d.Start(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	turn := thole.NewID[thole.TurnID](time.Now())
	if _, err := c.Run(t.Context(), wire.RunRequest{Turn: provider.Turn{ID: turn, Input: thole.Text("sim: run " + line)}, For: turn,
		Thread: "thread", Provider: "test", Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileFull}}}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = c.Events(t.Context(), turn, 0, func(batch []wire.LogEvent) error {
		for _, ev := range batch {
			if it := ev.Event.Item; ev.Event.Kind == event.ItemCompleted && it.Command != nil {
				out.WriteString(it.Command.Output)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

type found struct {
	provider.Provider
	name, binary string
}

func (f found) Name() string          { return f.name }
func (f found) Locate() provider.Info { return f.Probe(context.Background()) }
func (f found) Probe(context.Context) provider.Info {
	return provider.Info{Name: f.name, Binary: f.binary, Available: true}
}

// layout is a user's home directory.
type layout struct {
	*testing.T
	home string
}

func newLayout(t *testing.T) *layout {
	home, err := os.MkdirTemp("", "h") // short: it holds sockets
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	return &layout{t, home}
}

// canaries lie next to every place that a package manager uses.
func (l *layout) canaries() (out []string) {
	out = []string{"canary", ".thole/canary", ".local/canary", ".local/share/keyrings/canary", ".ssh/canary"}
	for _, at := range []string{"node_modules", ".local/lib/node_modules", ".local/bin", ".local/lib", ".local/lib/node_modules/@maker", ".local/lib/node_modules/other",
		".nvm/versions/node/v20", ".nvm/versions/node/v20/bin", ".nvm/versions/node/v20/lib/node_modules/other", ".local/share/pnpm", ".local/share/pnpm/global/5/node_modules/.pnpm/other"} {
		if _, err := os.Stat(filepath.Join(l.home, filepath.Dir(at))); err == nil {
			out = append(out, at+"/canary")
		}
	}
	return out
}

func (l *layout) path(name string) string {
	path := filepath.Join(l.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.Fatal(err)
	}
	return path
}

// put writes files; a text that begins with ! is a program.
func (l *layout) put(dir string, sets ...map[string]string) {
	for _, files := range sets {
		for name, text := range files {
			mode := os.FileMode(0o644)
			if strings.HasPrefix(text, "!") {
				text, mode = text[1:], 0o755
			}
			if err := os.WriteFile(l.path(filepath.Join(dir, name)), []byte(text), mode); err != nil {
				l.Fatal(err)
			}
		}
	}
}

func (l *layout) link(name, to string) {
	if err := os.Symlink(to, l.path(name)); err != nil {
		l.Fatal(err)
	}
}

func (l *layout) same(from, name string) {
	if os.Link(from, l.path(name)) != nil {
		l.copy(from, name)
	}
}

func (l *layout) copy(from, name string) {
	in, err := os.Open(from)
	if err != nil {
		l.Skip(err)
	}
	defer in.Close()
	out, err := os.OpenFile(l.path(name), os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err != nil || out.Close() != nil {
		l.Fatal(err)
	}
}
