package lab

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/unguarded"
)

// Thole is the program under test, as it is released: THOLE_TEST_BINARY, or built
// from this tree. All test binaries share one file.
func Thole(t testing.TB) string {
	t.Helper()
	path, err := BuiltThole()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// BuiltThole is Thole for a TestMain.
var BuiltThole = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("THOLE_TEST_BINARY"); path != "" {
		return path, nil
	}
	var flags []string
	if unguarded.Build { // as these tests
		flags = []string{"-tags", "thole_unguarded"}
	}
	path, err := build(flags...)
	if err != nil {
		return "", err
	}
	return path, os.Setenv("THOLE_TEST_BINARY", path) // for children
})

// UnguardedThole is the program without its guards, against which attacks must succeed.
var UnguardedThole = sync.OnceValues(func() (string, error) { return build("-tags", "thole_unguarded") })

func build(flags ...string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	root := fnv.New64a()
	_, _ = fmt.Fprint(root, append([]string{filepath.Dir(here)}, flags...))
	dir := filepath.Join(cacheDir(), fmt.Sprintf("built-%x", root.Sum64()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	// An up-to-date file is left alone, so that a running one is never written to.
	path := filepath.Join(dir, "thole")
	build := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", path}, flags, []string{"github.com/tholehq/thole/cmd/thole"})...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build thole: %w\n%s", err, out)
	}
	return path, nil
}
