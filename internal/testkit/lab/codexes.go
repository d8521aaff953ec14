package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// CodexOf returns the native program of another version of codex. It is got when it is
// first asked for, so only tests of the soak may.
func CodexOf(t testing.TB, version string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	cmd := exec.Command("bash", filepath.Join(filepath.Dir(here), "../../../scripts/lab"), "install", "codex@"+version)
	cmd.Env = append(os.Environ(), "CI=true") // what cannot be had is an error
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("get codex %s: %v: %s", version, err, out)
	}
	found, err := cached("codex-"+version+"/node_modules/@openai/codex/vendor", "codex@"+version)
	Need(t, "codex", err)
	for _, pattern := range []string{"*/bin/codex", "*/codex/codex"} {
		if all, _ := filepath.Glob(filepath.Join(found, pattern)); len(all) == 1 {
			return all[0]
		}
	}
	t.Fatalf("codex %s has no program below %s", version, found)
	return ""
}
