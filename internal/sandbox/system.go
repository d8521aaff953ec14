package sandbox

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// systemDirs are the part of a machine that programs need to run. Everybody reads the
// store of Nix by design.
var systemDirs = []string{"/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store"}

// System shows the system's programs and libraries, read-only.
func (b *Box) System() *Box {
	for _, dir := range systemDirs {
		if target, err := os.Readlink(dir); err == nil {
			b.Add("--symlink", target, dir)
			continue
		}
		b.Add("--ro-bind-try", dir, dir)
	}
	return b
}

// InSystem reports whether a path is in one of the directories that System shows.
func InSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

// RefusesNested reports whether bubblewrap can refuse namespaces inside a box. What is
// older leaves that to the system call filter.
func RefusesNested(ctx context.Context, bwrap string) bool {
	if known, ok := refusesNested.Load(bwrap); ok {
		return known.(bool)
	}
	out, err := exec.CommandContext(ctx, bwrap, "--help").Output()
	can := err == nil && strings.Contains(string(out), "--disable-userns")
	if err == nil {
		refusesNested.Store(bwrap, can)
	}
	return can
}

// refusesNested is what is known, by bubblewrap's path.
var refusesNested sync.Map
