//go:build linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// An agent sees no file that the process which started thole had open.
func TestAgentsInheritNoFiles(t *testing.T) {
	home := t.TempDir()
	open, err := os.Create(filepath.Join(home, "opened-by-a-shell"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	cmd := exec.Command(lab.Thole(t), "--home", filepath.Join(home, "t"), "provider", "try", "--provider", "test", "--profile", "full", "--dir", home,
		"sim: run readlink /proc/self/fd/* ;; say done")
	cmd.Env, cmd.ExtraFiles = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, []*os.File{open, open, open}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "pipe:") {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "opened-by-a-shell") {
		t.Errorf("the agent was given a file:\n%s", out)
	}
}
