//go:build linux

package exec_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// TestGuideWithCodex types the three commands of the guide as they stand there, with the
// real codex in the place of a terminal's: the command of its prompt runs on the executor.
func TestGuideWithCodex(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guide/remote-exec.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for i, part := range strings.Split(string(page), "```") {
		if how, text, _ := strings.Cut(part, "\n"); i%2 == 1 && strings.HasPrefix(how, "sh") && len(commands) < 3 {
			commands = append(commands, text)
		}
	}
	c := newCodex(t)
	home, bin := t.TempDir(), t.TempDir()
	codex := fmt.Sprintf("#!/bin/sh\nexec env HOME=%[1]s CODEX_HOME=%[1]s %[2]s exec --skip-git-repo-check %[3]s 'sim: run echo here-$((40+2)); echo for-$EXECUTOR ;; say Result: %%tool%%'\n", c.home, c.bin, fullAccess)
	if err := os.WriteFile(filepath.Join(bin, "codex"), []byte(codex), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(lab.Thole(t), filepath.Join(bin, "thole")); err != nil {
		t.Fatal(err)
	}
	// The variable is set for the executor alone: it shows where the command ran.
	script := "set -eu\ntrap 'kill $(jobs -p); wait' EXIT\n" + commands[0] + "export EXECUTOR=the-desk\n" + commands[1] + "unset EXECUTOR\n" + commands[2]
	cmd := osexec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = c.dir
	cmd.Env = []string{"HOME=" + home, "THOLE_HOME=" + home + "/.thole", "PATH=" + bin + ":/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "here-42") || !strings.Contains(string(out), "for-the-desk") {
		t.Fatalf("%v\n%s", err, out)
	}
}
