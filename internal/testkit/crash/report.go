package crash

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// ReportDir is where tests leave the names of the steps they killed at, one
// file per test, so that one command can judge several test binaries together:
// THOLE_CRASH_REPORT, else a directory in the user's cache.
func ReportDir() (string, error) {
	if dir := os.Getenv("THOLE_CRASH_REPORT"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "thole", "crash-steps"), nil
}

// record notes the steps of a trace as covered by the test.
func record(test string, trace []string) error {
	dir, err := ReportDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	pkg := filepath.Base(os.Args[0])
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		pkg = info.Path
	}
	var steps []string
	seen := map[string]bool{}
	for _, at := range trace {
		if step := strings.Fields(at)[1]; !seen[step] {
			seen[step] = true
			steps = append(steps, step)
		}
	}
	name := strings.NewReplacer("/", "_", " ", "_").Replace(pkg + "." + test)
	return os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(steps, "\n")+"\n"), 0o600)
}

// Covered returns every step that some recorded test was killed at.
func Covered() (map[string]bool, error) {
	dir, err := ReportDir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, err
	}
	covered := map[string]bool{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for step := range strings.FieldsSeq(string(data)) {
			covered[step] = true
		}
	}
	return covered, nil
}
