package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Tools lie wherever their user put them, below /tmp too, which is the executor's
// own inside.
func TestToolsAreSeenWhereverTheyLie(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	dir, err := os.MkdirTemp("/tmp", "tools")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tool := filepath.Join(dir, "tool")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho reached\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Tools: func() local.Tools { return local.Tools{Readable: []string{tool}} }})
	got := b.run(b.start(), "sim: run "+tool+"; tool; touch /tmp/mine && echo writable; rm "+tool+" 2>/dev/null || echo kept")
	if want := "reached\nreached\nwritable\nkept\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheSandboxSeesItsOwnFilesOnly(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	info := b.start()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("do not read"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := b.run(info, "sim: run pwd; cat "+secret+" 2>/dev/null || echo unreadable; touch /usr/x 2>/dev/null || echo readonly; ls /root /home; echo $HOME; ls "+b.root+" 2>&1 || true")
	for _, want := range []string{"/workspace\n", "unreadable", "readonly", "agent", "/home/agent"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for _, bad := range []string{"do not read", string(b.id)} {
		if strings.Contains(got, bad) {
			t.Errorf("the sandbox saw %q: %q", bad, got)
		}
	}
}
