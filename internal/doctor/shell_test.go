package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
)

// The doctor says what of PATH and the variables agents have, and refuses what was typed
// and cannot be shown. A directory with a key of thole's is left out.
func TestCheckShell(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"bin/x", "keys/vault.key", "secret/.netrc", "u/.gitconfig"} {
		at := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("[user]\nname = A\nemail = a@example.com\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := func(name string) string { return filepath.Join(home, name) }
	t.Setenv("HOME", dir("u"))
	t.Setenv("PATH", strings.Join([]string{dir("bin"), dir("keys"), dir("secret"), os.Getenv("PATH")}, ":"))
	t.Setenv("MY_TOKEN", "x")
	cfg := config.Default()
	cfg.Home, cfg.Vault.KeyFile, cfg.Executor.Env = dir("thole"), dir("keys/vault.key"), []string{"MY_TOKEN", "UNSET"}
	f := checkShell(t.Context(), &cfg)
	for _, want := range []string{dir("keys") + " (", "a key of thole's", dir("secret") + " (", "holds keys", "A <a@example.com>", "hands them MY_TOKEN", "UNSET of executor.env is not set"} {
		if !f.OK || !strings.Contains(f.Found, want) {
			t.Errorf("it says nothing of %q: %+v", want, f)
		}
	}
	if strings.Contains(f.Found, dir("bin")+" (") {
		t.Errorf("a harmless directory: %s", f.Found)
	}
	cfg.Executor.Path = config.Path{"inherit", dir("secret")}
	if f := checkShell(t.Context(), &cfg); f.OK || !strings.Contains(f.Problem, dir("secret")) || f.Fix == "" {
		t.Errorf("what was typed: %+v", f)
	}
	cfg.Executor.Path, cfg.Executor.Env = config.Path{"system"}, nil
	if p := Shell(t.Context(), &cfg); len(p.Path)+len(p.Env)+len(p.Show)+len(p.Files) > 0 {
		t.Errorf("the system alone: %+v", p)
	}
}
