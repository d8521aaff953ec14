package registry

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

type found struct {
	provider.Provider
	name, binary string
}

func (f found) Name() string          { return f.name }
func (f found) Locate() provider.Info { return f.Probe(context.Background()) }
func (f found) Probe(context.Context) provider.Info {
	return provider.Info{Name: f.name, Binary: f.binary, Available: true}
}

// A sandbox is shown where the links of a CLI lead, and executord learns that
// path; a script comes with its package.
func TestSandboxesSeeWhereLinksLead(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(path, body string) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(to, name string) string {
		from := filepath.Join(dir, "bin", name)
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
		return from
	}
	native := put("versions/2.1/claude", "\x7fELF")
	global := put("node/lib/node_modules/codex/bin/codex.js", "#!/usr/bin/env node\n")
	own := put("project/node_modules/opencode/bin/opencode", "#!/usr/bin/env node\n")
	r := New([]provider.Provider{
		found{name: "claude", binary: link(native, "claude")}, found{name: "codex", binary: link(global, "codex")}, found{name: "opencode", binary: own},
	}, nil, slog.New(slog.DiscardHandler))
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer r.Stop(t.Context())
	if got := r.Paths()["claude"]; got != native {
		t.Errorf("executord is told %s, want %s", got, native)
	}
	got := r.Binaries()
	for _, want := range []string{native, global, filepath.Join(dir, "node/lib/node_modules/codex"), own, filepath.Join(dir, "project/node_modules/opencode")} {
		if !slices.Contains(got, want) {
			t.Errorf("the sandbox does not see %s: %v", want, got)
		}
	}
	if slices.Contains(got, filepath.Join(dir, "bin/claude")) {
		t.Error("a link is shown: mounting over it fails where it leads nowhere inside")
	}
}
