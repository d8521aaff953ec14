package opencode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

func TestDeadLocksAreDropped(t *testing.T) {
	state := t.TempDir()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	lock := func(name, meta string) string {
		dir := filepath.Join(state, "opencode", "locks", name+".lock")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if meta != "" {
			if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(meta), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	owner := func(pid int, host string) string {
		return fmt.Sprintf(`{"token":"t","pid":%d,"hostname":%q,"createdAt":"2026-01-01T00:00:00Z"}`, pid, host)
	}
	cases := []struct {
		dir  string
		kept bool
	}{
		{lock("alive", owner(os.Getpid(), host)), true},
		{lock("dead", owner(gone.Process.Pid, host)), false},
		{lock("elsewhere", owner(os.Getpid(), host+"-other")), false},
		{lock("being-made", ""), true},
		{lock("broken", "{"), true},
	}
	dropDeadLocks(provider.SessionConfig{}, state)
	dropDeadLocks(provider.SessionConfig{}, filepath.Join(state, "no-such-place"))
	for _, c := range cases {
		if _, err := os.Stat(c.dir); (err == nil) != c.kept {
			t.Errorf("%s: kept %v, want %v", filepath.Base(c.dir), err == nil, c.kept)
		}
	}
}

func TestPreparedConfigKeepsWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "opencode")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := prepareConfig(provider.SessionConfig{}, dir); err != nil {
			t.Fatal(err)
		}
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, "package.json")); string(raw) != "mine" {
		t.Errorf("package.json holds %q", raw)
	}
	for _, f := range []string{"node_modules", "package-lock.json"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
}
