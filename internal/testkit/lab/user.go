package lab

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// ordinary is an unprivileged user of the machine, without a name.
const ordinary = 61234

// EveryUser runs a test twice where we are root: as root, and in a copy of this
// program that an ordinary user runs, who finds of root's parts only the agents that
// are named. Otherwise it runs it once.
func EveryUser(t *testing.T, test func(t *testing.T), agents ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Run("user", test)
		return
	}
	t.Run("root", test)
	t.Run("user", func(t *testing.T) {
		name, _, _ := strings.Cut(t.Name(), "/")
		asUser(t, []string{name}, agents)
	})
}

// OrdinaryUser has an ordinary user run other tests of this package, where we are root. A
// test that is skipped there fails.
func OrdinaryUser(t *testing.T, tests []string, agents ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("an ordinary user runs all tests already")
	}
	asUser(t, tests, agents)
}

func asUser(t *testing.T, tests, agents []string) {
	t.Helper()
	dir := Open(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{self: "test", Thole(t): "thole"} {
		if err := copyProgram(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	var handed []string
	for _, a := range []*agent{&codex, &claude, &opencode} {
		if !slices.Contains(agents, a.part) {
			continue
		}
		at := filepath.Join(dir, a.part)
		if from := a.use(t); os.Link(from, at) != nil { // on another file system
			if err := copyProgram(from, at); err != nil {
				t.Fatal(err)
			}
		}
		handed = append(handed, a.handed()+"="+at)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "test"), "-test.run=^("+strings.Join(tests, "|")+")$", "-test.v")
	cmd.Dir = home
	cmd.Env = append(handed, "PATH="+os.Getenv("PATH"), "HOME="+home, "THOLE_TEST_BINARY="+filepath.Join(dir, "thole"), "THOLE_SOAK="+os.Getenv("THOLE_SOAK"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	for _, name := range tests {
		if err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
			t.Fatalf("%s as user %d: %v\n%s", name, ordinary, err, out)
		}
	}
}

// Open is a directory that every user may enter.
func Open(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
