package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/parts"
)

// Need ends a test that lacks a part: with a skip and its reason on a developer's
// machine, with a failure when CI=true, because there a skip would hide that
// nothing real was tested.
func Need(t testing.TB, part string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s: %v", part, err)
		return
	}
	t.Skipf("%s: %v", part, err)
}

// cacheDir is where scripts/lab puts what it gets.
func cacheDir() string {
	if dir := os.Getenv("THOLE_LAB"); dir != "" {
		return dir
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "thole-lab")
}

// cached finds the one file that pattern names in the cache.
func cached(pattern, install string) (string, error) {
	found, err := filepath.Glob(filepath.Join(cacheDir(), pattern))
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("not installed (scripts/lab install %s)", install)
	}
	return found[0], nil
}

// command finds a program of the system, also where only root's PATH looks.
func command(name, pkg string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s not found (apt-get install %s)", name, pkg)
}

// versionOf runs a program for its version and returns the first word that starts
// with a digit, after the program's own name if that is part of it (jq-1.7). The
// program gets no environment to speak of.
func versionOf(path string, args ...string) (string, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + os.TempDir()}
	var told strings.Builder // some say it there
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err == nil && len(out) == 0 {
		out = []byte(strings.TrimPrefix(told.String(), "OpenSSH_"))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(path), strings.Join(args, " "), err)
	}
	for _, word := range strings.Fields(string(out)) {
		word = strings.TrimPrefix(strings.Trim(word, "(),v"), filepath.Base(path)+"-")
		if word != "" && word[0] >= '0' && word[0] <= '9' {
			return word, nil
		}
	}
	return "", errors.New(filepath.Base(path) + " reported no version")
}

// use records that t runs on a part.
func use(t testing.TB, part, version string) {
	t.Helper()
	parts.Use(t, part, version)
}

// Cache is a place in the lab's cache for what tests make of its parts, one name for each
// version of them.
func Cache(name string) string { return filepath.Join(cacheDir(), name) }
