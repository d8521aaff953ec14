package opencode

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// find returns the absolute path of the native binary. What npm puts on the PATH
// may be a script; the binary is then in the package for this platform beside it.
func find(configured string) (string, error) {
	var candidates []string
	if configured != "" {
		candidates = []string{configured}
	} else {
		if p, err := exec.LookPath("opencode"); err == nil {
			candidates = append(candidates, p)
		}
		if home, err := os.UserHomeDir(); err == nil {
			candidates = append(candidates, filepath.Join(home, ".opencode", "bin", "opencode"))
		}
	}
	for _, c := range candidates {
		if p := native(c); p != "" {
			return p, nil
		}
	}
	where := "on the PATH"
	if configured != "" {
		// Whoever names a file means it, even a wrapper of their own.
		if abs, err := filepath.Abs(configured); err == nil && runnable(abs) {
			return abs, nil
		}
		where = "at " + configured
	}
	return "", thole.Errorf(thole.CodeUnavailable, "%w: no opencode binary %s; install it with `%s`", provider.ErrMissing, where, install).
		WithHint("%s", install)
}

// native resolves a candidate to a native executable, "" when there is none.
func native(path string) string {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	if executable(path) {
		return path
	}
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		for _, kind := range []string{"", "-baseline", "-musl"} {
			p := filepath.Join(dir, fmt.Sprintf("opencode-%s-%s%s", runtime.GOOS, arch, kind), "bin", "opencode")
			if executable(p) {
				return p
			}
		}
	}
	return ""
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// executable reports a native program: an executable file that is no script.
func executable(path string) bool {
	if !runnable(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return false
	}
	switch string(magic[:]) {
	case "\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe":
		return true
	}
	return magic[0] == 'M' && magic[1] == 'Z'
}
