package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/source"
)

// mirrors is the part of the home whose git objects are shown to agents.
const mirrors = "mirrors"

// objects are the directories of git objects that a thread's files refer to, parents
// first so that none hides another.
func objects(s thole.Source) []string {
	all := slices.Clone(s.Objects)
	slices.Sort(all)
	return slices.Compact(all)
}

// checkObjects looks at the git objects that a box is to show: that they are there, and
// that they are git objects and nothing else. Without a box they only have to be there.
func (d *Driver) checkObjects(id thole.ExecutorID, boxed bool) error {
	l, err := d.label(id)
	if errors.Is(err, executor.ErrNotFound) {
		return nil // which the start says itself
	}
	if err != nil {
		return err
	}
	if err := source.Present(l.Spec.Files); err != nil {
		return err
	}
	for _, dir := range l.Spec.Files.Objects {
		if err := d.checkObject(dir); err != nil && boxed {
			return err
		}
	}
	return nil
}

// checkObject refuses a directory that agents must not be shown.
func (d *Driver) checkObject(dir string) error {
	no := func(format string, args ...any) error {
		return thole.Errorf(thole.CodeForbidden, "git objects in %s are not shown to agents: "+format, append([]any{dir}, args...)...).
			WithHint("move the repository, or name it with file:// so that it is copied")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return no("%w", err)
	}
	if real != dir {
		return no("a link leads to them, now to %s", real)
	}
	if home, err := filepath.EvalSymlinks(d.cfg.Home); err != nil || (within(real, home) || within(home, real)) && !within(real, filepath.Join(home, mirrors)) {
		return no("they are thole's own files")
	}
	for _, at := range noDirs {
		if within(real, at) || within(at, real) {
			return no("the directory covers %s, or is in it", at)
		}
	}
	for name := range strings.SplitSeq(real, "/") {
		if holdsKeys(name, true) {
			return no("they are in %s, which holds keys", name)
		}
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return no("%w", err)
	}
	for _, e := range entries {
		if name := e.Name(); !objectName(name) {
			return no("there is also %q", name)
		}
	}
	return nil
}

// objectName reports whether git has such a name in a directory of objects.
func objectName(name string) bool {
	return name == "pack" || name == "info" || len(name) == 2 && strings.Trim(name, "0123456789abcdef") == "" ||
		strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, "incoming-") || strings.HasPrefix(name, "maintenance.lock") || strings.HasPrefix(name, ".tmp-") || strings.HasPrefix(name, "bulk-fsync")
}
