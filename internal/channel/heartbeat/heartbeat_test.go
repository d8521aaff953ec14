package heartbeat_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel/heartbeat"
)

// Only what the file itself says is proof; whatever cannot be read is never paused or gone.
func TestLook(t *testing.T) {
	home := t.TempDir()
	if f, err := heartbeat.Look(home, "a"); f.Status != thole.AutomationUnclear || err == nil {
		t.Errorf("without any automations: %+v, %v", f, err)
	}
	dir := filepath.Join(home, "automations", "a")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "automation.toml")
	paused := "id = \"a\"\nname = \"n\"\nkind = \"heartbeat\"\nstatus = \"PAUSED\"\nrrule = \"FREQ=MINUTELY;INTERVAL=1\"\ntarget_thread_id = \"t\"\nprompt = \"p\"\nmodel = \"m\"\n"
	for _, c := range []struct {
		body string
		want thole.AutomationStatus
		bad  bool
	}{
		{paused, thole.AutomationPaused, false},
		{"status = \"ACTIVE\"", thole.AutomationActive, false},
		{"status = \"paused\"", thole.AutomationUnclear, false},
		{"name = \"n\"", thole.AutomationUnclear, false},
		{"id = \"b\"\nstatus = \"PAUSED\"", thole.AutomationUnclear, true},
		{"status = \"PAUSED", thole.AutomationUnclear, true},
		{"", thole.AutomationUnclear, false},
	} {
		if err := os.WriteFile(path, []byte(c.body), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := heartbeat.Look(home, "a"); f.Status != c.want || (err != nil) != c.bad {
			t.Errorf("%q: %+v, %v", c.body, f, err)
		}
	}
	for what, spoil := range map[string]func() error{
		"no file": func() error { return nil },
		"a link":  func() error { return os.Symlink(filepath.Join(home, "other"), path) },
		"a pipe":  func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		_ = os.Remove(path)
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if f, err := heartbeat.Look(home, "a"); f.Status != thole.AutomationUnclear || err == nil {
			t.Errorf("%s: %+v, %v", what, f, err)
		}
	}
	if f, err := heartbeat.Look(home, "gone"); f.Status != thole.AutomationGone || err != nil {
		t.Errorf("%+v, %v", f, err)
	}
	for _, id := range []string{"", ".", "..", "../a", "a/b"} {
		if f, err := heartbeat.Look(home, id); f.Status != thole.AutomationUnclear || err == nil {
			t.Errorf("%q: %+v, %v", id, f, err)
		}
	}
}

// A fingerprint changes with the app's program and with who may read the home.
func TestFingerprint(t *testing.T) {
	home := t.TempDir()
	program := filepath.Join(home, "codex")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	first := heartbeat.Fingerprint(home, program, "1")
	if first == "" || heartbeat.Fingerprint(home, program, "1") != first {
		t.Fatal("it is not the same twice")
	}
	if heartbeat.Fingerprint(home, filepath.Join(home, "none"), "1") != "" {
		t.Error("without a program there is one")
	}
	if heartbeat.Fingerprint(home, program, "2") == first {
		t.Error("another release has the same")
	}
	if err := os.Chmod(home, 0o750); err != nil {
		t.Fatal(err)
	}
	if heartbeat.Fingerprint(home, program, "1") == first {
		t.Error("another mode has the same")
	}
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if heartbeat.Fingerprint(home, program, "1") == first {
		t.Error("another program has the same")
	}
}
