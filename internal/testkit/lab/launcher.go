package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// launcher does what npm's codex does on a node that cannot become another program:
// it starts the native one, passes signals on and ends as that one ended.
const launcher = `#!/usr/bin/env node
import { spawn } from "node:child_process";
const child = spawn(%q, process.argv.slice(2), { stdio: "inherit" });
for (const sig of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(sig, () => { if (!child.killed) child.kill(sig); });
child.on("error", (err) => { console.error(err); process.exit(1); });
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
`

// CodexLauncher returns a codex as npm installs it: a node script, which stays the
// parent of the native program.
func CodexLauncher(t testing.TB) string {
	t.Helper()
	native := Codex(t)
	if _, err := exec.LookPath("node"); err != nil {
		Need(t, "codex", fmt.Errorf("its launcher needs node: %w", err))
	}
	return script(t, fmt.Appendf(nil, launcher, native))
}

// NPMCodex returns the launcher that npm's own package has, in front of the codex of
// the lab.
func NPMCodex(t testing.TB) string {
	t.Helper()
	native := Codex(t)
	_, dir := AISDK(t)
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "@openai", "codex", "bin", "codex.js"))
	Need(t, "aisdk", err)
	path := script(t, text)
	vendor := filepath.Dir(filepath.Dir(filepath.Dir(native)))
	if err := os.Symlink(vendor, filepath.Join(filepath.Dir(filepath.Dir(path)), "vendor")); err != nil {
		t.Fatal(err)
	}
	return path
}

// script lays a package's program out as npm does.
func script(t testing.TB, text []byte) string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "bin", "codex.js")
	err := os.Mkdir(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, text, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "package.json"), []byte(`{"type":"module"}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
