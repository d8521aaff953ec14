package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// A package that is named runs the tests that are named for it, any other all.
func TestChosen(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"internal/store":            "-test.v -test.run Group|GiveUp\n",
		"internal/store/storetest":  "-test.v\n",
		"internal/daemon":           "-test.v -test.run Serve\n",
		"internal/daemon/supervise": "-test.v -test.run Serve\n",
		"internal/process":          "-test.v\n",
	} {
		cmd := exec.Command(filepath.Join(root, "scripts", "chosen"), "echo", "-test.v")
		cmd.Dir = filepath.Join(root, dir)
		cmd.Env = append(cmd.Environ(), "RACED=./internal/store=Group|GiveUp ./internal/daemon/...=Serve")
		if got, err := cmd.CombinedOutput(); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", dir, got, err, want)
		}
	}
}
