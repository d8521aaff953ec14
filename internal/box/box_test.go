//go:build linux

package box_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], box.InitArgs) {
		fmt.Fprintln(os.Stderr, box.Init())
		os.Exit(1)
	}
	switch os.Getenv("BOX_TEST") {
	case "intrude":
		intrude(os.Args[1])
		os.Exit(0)
	case "own":
		own()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// program is this test's own binary where everybody may run it.
func program(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		return self
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(lab.Open(t), "program")
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}

func config(bwrap, init string, flags ...string) box.Config {
	b := sandbox.Agents(true).Add(flags...).Kernel().Add("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--tmpfs", "/tmp", "--ro-bind", init, "/run/init", "--dir", "/workspace")
	cfg := box.Config{Path: bwrap, Args: b.Command("/workspace", append([]string{"/run/init"}, box.InitArgs...)...)}
	if os.Getuid() == 0 { // whose agents are other users
		const agent = "1900000001"
		cfg.Path, cfg.Args = "/usr/bin/setpriv", append([]string{"--reuid", agent, "--regid", agent, "--clear-groups", bwrap}, cfg.Args...)
	}
	return cfg
}

func start(t testing.TB) *box.Box {
	t.Helper()
	b, err := box.Start(t.Context(), config(lab.Bwrap(t), program(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// inside runs a program in the box to its end and returns what it printed.
func inside(t testing.TB, b *box.Box, env []string, argv ...string) (string, box.Exit) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	child, err := b.Spawn(box.Command{Path: argv[0], Argv: argv, Env: append([]string{"PATH=/usr/bin:/bin"}, env...), Dir: "/workspace", Files: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := child.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return string(out), exit
}

func script(t testing.TB, b *box.Box, text string) string {
	t.Helper()
	out, _ := inside(t, b, nil, "/bin/sh", "-c", text)
	return out
}

// A box that cannot be made says why.
func TestABoxThatCannotBeMade(t *testing.T) {
	cfg := config(lab.Bwrap(t), "/nothing")
	if _, err := box.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "/nothing") {
		t.Error(err)
	}
	if _, err := box.Start(t.Context(), box.Config{Path: "/bin/true"}); err == nil {
		t.Error("a box without an init")
	}
}
