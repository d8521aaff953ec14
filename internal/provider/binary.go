package provider

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	thole "github.com/tholehq/thole"
)

// Binary says where a CLI's native program can be.
type Binary struct {
	Title   string // for people
	Name    string // on the PATH
	Install string // the command that brings it
	// Homes are places below the user's home directory, tried after the PATH.
	Homes []string
	// NativePatterns are patterns of the native program, below any directory above the
	// script that a package manager put on the PATH, or its node_modules.
	NativePatterns []string
}

// Find returns the absolute path of the native program: a signal to a script
// around it would not reach the agent. configured is a path to use instead of
// looking; a user who names a file means it, even a script.
func (b Binary) Find(configured string) (string, error) {
	candidates := []string{configured}
	where := "at " + configured
	if configured == "" {
		where = "on the PATH"
		candidates = nil
		if p, err := exec.LookPath(b.Name); err == nil {
			candidates = append(candidates, p)
		}
		if home, err := os.UserHomeDir(); err == nil {
			for _, h := range b.Homes {
				candidates = append(candidates, filepath.Join(home, filepath.FromSlash(h)))
			}
		}
	}
	for _, c := range candidates {
		if p := b.native(c); p != "" {
			return p, nil
		}
	}
	if abs, err := filepath.Abs(configured); err == nil && configured != "" && runnable(abs) {
		return abs, nil
	}
	if configured != "" {
		return "", thole.Errorf(thole.CodeUnavailable, "%w: no %s binary %s", ErrMissing, b.Title, where).
			WithHint("correct providers.%s in the configuration, or remove it: then the PATH is searched", b.Name)
	}
	return "", thole.Errorf(thole.CodeUnavailable, "%w: no %s binary %s; install it with `%s`", ErrMissing, b.Title, where, b.Install).
		WithHint("%s", b.Install)
}

// native resolves a candidate to a native program, "" when there is none.
func (b Binary) native(path string) string {
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
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		for _, pattern := range b.NativePatterns {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			nested, _ := filepath.Glob(filepath.Join(dir, "node_modules", pattern))
			for _, p := range append(found, nested...) {
				if executable(p) {
					return p
				}
			}
		}
	}
	return ""
}

// NodePlatform is this machine as packages of npm name it.
func NodePlatform() string {
	if runtime.GOARCH == "amd64" {
		return runtime.GOOS + "-x64"
	}
	return runtime.GOOS + "-" + runtime.GOARCH
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
