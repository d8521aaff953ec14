package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/store"
)

// A key that a box would show to agents is refused before anything starts.
func TestTheKeyIsNotWhereAgentsRead(t *testing.T) {
	tools := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tools, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "k")
	if err := os.WriteFile(filepath.Join(tools, "there"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(tools, "there"), file); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		file:                             false,
		"":                               true,
		"/var/lib/thole/vault.key":       true,
		"/etc/thole/vault.key":           true,
		"/opt/thole/vault.key":           false,
		"/usr/local/etc/vault.key":       false,
		"/etc/ssl/vault.key":             false,
		filepath.Join(tools, "k"):        false,
		filepath.Join(link, "k"):         false,
		filepath.Join(tools+"-", "k"):    true,
		filepath.Join(t.TempDir(), "k"):  true,
		filepath.Join(tools, "a/b/c/.k"): false,
	} {
		cfg := config.Default()
		cfg.Home, cfg.Executor.Paths, cfg.Vault.KeyFile = t.TempDir(), []string{tools}, path
		_, err := newVault(&cfg, new(store.DB), nil)
		if (err == nil) != ok || err != nil && (thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(thole.HintOf(err), "vault.key_file")) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
