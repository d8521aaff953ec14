package opencode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// The environment is the session's own: nothing of the host, state under Data,
// and rules that the session cannot be given other values for.
func TestEnvironment(t *testing.T) {
	t.Setenv("HOST_SECRET", "x")
	cfg := provider.SessionConfig{Data: "/d", Auth: "/a", Env: map[string]string{"HOME": "/h", "OPENCODE_PERMISSION": `{"*":"allow"}`, "XDG_DATA_HOME": "/elsewhere"}}
	env := environment(cfg, "pw")
	if _, ok := env["HOST_SECRET"]; ok {
		t.Error("the host's environment was inherited")
	}
	if env["HOME"] != "/h" || env["XDG_DATA_HOME"] != "/d/opencode/data" || env["OPENCODE_PERMISSION"] != rules || env["OPENCODE_SERVER_PASSWORD"] != "pw" {
		t.Errorf("environment %v", env)
	}
	if strings.HasPrefix(env["XDG_CONFIG_HOME"], "/d") || strings.HasPrefix(env["XDG_CACHE_HOME"], "/d") {
		t.Error("packages and caches would be synced")
	}
}

// A login that was refreshed inside the synced tree leaves it.
func TestCredentialsLeave(t *testing.T) {
	root := t.TempDir()
	cfg := provider.SessionConfig{Data: filepath.Join(root, "data"), Auth: filepath.Join(root, "auth")}
	inside := filepath.Join(dataHome(cfg), name)
	for _, d := range []string{inside, cfg.Auth} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(inside, credentials), []byte("fresh"), 0o600); err != nil {
		t.Fatal(err)
	}
	linkCredentials(cfg)
	if raw, _ := os.ReadFile(filepath.Join(cfg.Auth, credentials)); string(raw) != "fresh" {
		t.Errorf("the refreshed login is lost: %q", raw)
	}
	if info, err := os.Lstat(filepath.Join(inside, credentials)); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("what lies inside is no link: %v %v", info, err)
	}
	moveCredentials(cfg)
	if _, err := os.Lstat(filepath.Join(inside, credentials)); !os.IsNotExist(err) {
		t.Errorf("something is left inside: %v", err)
	}
}
