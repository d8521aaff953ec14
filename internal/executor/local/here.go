package local

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/unguarded"
)

// Agents of a thread whose source is here work in the user's own directory. It is shown
// under its own path, belongs to its owner whichever user the agent is, and is neither made nor
// removed by us.

// In these nobody works; what is of the system is in the first, what many share is the
// second themselves.
var (
	systemPlaces = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
		"/var/backups", "/var/cache", "/var/lib", "/var/log", "/var/mail", "/var/run", "/var/spool"}
	sharedPlaces = []string{"/", "/home", "/media", "/mnt", "/opt", "/srv", "/tmp", "/var", "/var/tmp"}
	// configPlaces, below a home, hold the keys of many programs.
	configPlaces = []string{".config", ".local", ".local/share", ".cache", "Library"}
)

// CheckHere refuses a directory in which agents must not work although a person named it,
// and returns where it lies, without links. home is thole's.
func CheckHere(dir, home string) (repository.Place, error) {
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case !filepath.IsAbs(dir):
		return repository.Place{}, thole.Errorf(thole.CodeInvalid, "%q is not an absolute path", dir)
	case errors.Is(err, fs.ErrNotExist):
		return repository.Place{}, thole.Errorf(thole.CodeNotFound, "directory %s does not exist", dir)
	case err != nil:
		return repository.Place{}, thole.Errorf(thole.CodeInvalid, "directory %s cannot be worked in: %w", dir, err)
	}
	if err := checkHere(real, home); err != nil {
		return repository.Place{}, err
	}
	place, err := repository.Locate(real, func(path string) error { return checkHere(path, home) })
	if err == nil {
		err = place.CheckFiles()
	}
	if err != nil {
		return place, err
	}
	if fi, err := os.Stat(real); err == nil {
		place.Home = homeOf(int(fi.Sys().(*syscall.Stat_t).Uid))
	}
	if os.Geteuid() != 0 {
		return place, nil
	}
	for _, path := range append(place.Outside(), place.Dir) {
		if err := sandbox.CheckLend(path); err != nil {
			return place, thole.Errorf(thole.CodeUnsupported, "agents of root cannot work in %s: %w", path, err).
				WithHint("run thole as the user who owns the directory, or start the thread on a branch of it: --repo %s", place.Dir)
		}
	}
	return place, nil
}

// CheckHere is the function for this driver's home, and without walls for file systems that
// cannot show files under another owner too.
func (d *Driver) CheckHere(dir string) (repository.Place, error) {
	place, err := CheckHere(dir, d.cfg.Home)
	if d.cfg.Bwrap == "" && d.cfg.Box == nil && thole.CodeOf(err) == thole.CodeUnsupported {
		err = nil // root works there itself
	}
	return place, err
}

func checkHere(dir, home string) error {
	no := func(hint, format string, args ...any) error {
		return thole.Errorf(thole.CodeForbidden, "agents cannot work in %s: it "+format, append([]any{dir}, args...)...).WithHint("%s", hint)
	}
	const below = "name the directory of one project"
	fi, err := os.Stat(dir)
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "directory %s cannot be worked in: %w", dir, err)
	}
	if !fi.IsDir() {
		return thole.Errorf(thole.CodeInvalid, "%s is not a directory", dir).WithHint(below)
	}
	owner := int(fi.Sys().(*syscall.Stat_t).Uid)
	homes := homesOf(owner)
	for _, h := range homes {
		if within(h, dir) {
			return no(below, "holds the whole home directory %s", h)
		}
		if link := agentLink(h, dir); link != "" {
			return no("start the thread on a branch of it: --repo "+dir, "holds the configuration of agents, to which %s leads", link)
		}
		for _, name := range configPlaces {
			if dir == filepath.Join(h, name) {
				return no(below, "holds the keys of many programs")
			}
		}
	}
	if slices.Contains(sharedPlaces, dir) {
		return no(below, "is shared by everybody on this machine")
	}
	for _, place := range systemPlaces {
		if within(dir, place) {
			return no(below, "belongs to the system")
		}
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if within(home, dir) || within(dir, home) {
		return no(below, "holds thole's own files, or lies in them")
	}
	if name, ok := keyPlace(dir); ok {
		return no(below, "lies in %s, which holds keys", name)
	}
	if uid := os.Geteuid(); uid != 0 && owner != uid {
		return no("run thole as the user who owns it, or start the thread on a branch of it", "belongs to another user (%d)", owner)
	}
	return nil
}

// keyPlace is the directory of keys that a path lies in. Names without a dot are those of
// projects too, unless a directory of configuration has them.
func keyPlace(dir string) (string, bool) {
	above := ""
	for name := range strings.SplitSeq(dir, "/") {
		if holdsKeys(name, true) && (strings.HasPrefix(name, ".") || slices.Contains([]string{".config", "share"}, above)) {
			return name, true
		}
		above = name
	}
	return "", false
}

// homesOf are the home directories of a user, and of the server's own.
func homesOf(uid int) (homes []string) {
	add := func(dir string) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != "/" {
			homes = append(homes, real)
		}
	}
	for _, id := range slices.Compact([]int{os.Geteuid(), uid}) {
		add(homeOf(id))
		if u, err := user.LookupId(strconv.Itoa(id)); err == nil { // which the environment may not say
			add(u.HomeDir)
		}
	}
	return homes
}

// homeOf is the home directory of a user, "" where it is not known.
func homeOf(uid int) string {
	if uid == os.Geteuid() {
		dir, _ := os.UserHomeDir()
		return dir
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.HomeDir
	}
	return ""
}

// identity says which directory it was. Devices have other numbers after a restart of the
// machine.
type identity struct {
	Dev, Ino uint64
}

func identify(dir string) (identity, error) {
	fi, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, thole.Errorf(thole.CodeGone, "the directory that this thread works in, %s, is gone", dir).
			WithHint("put it back, or start another thread where the files are now")
	}
	if err != nil {
		return identity{}, thole.Errorf(thole.CodeUnavailable, "look at the directory that this thread works in: %w", err)
	}
	st := fi.Sys().(*syscall.Stat_t)
	return identity{Dev: uint64(st.Dev), Ino: st.Ino}, nil //nolint:unconvert // it is narrower on other systems
}

func replaced(dir string) error {
	return thole.Errorf(thole.CodeGone, "the directory that this thread works in, %s, was replaced by another one", dir).
		WithHint("put it back, or start another thread in the one that is there now")
}

// ground is where the agents of an executor work that has a directory of the user: nil for
// one that has none. It is looked at before each start.
func (d *Driver) ground(l label) (*repository.Place, error) {
	if !l.Spec.Files.InPlace() {
		return nil, nil
	}
	dir := l.Spec.Files.Dir
	now, err := identify(dir)
	if err != nil {
		return nil, err
	}
	if l.At.Ino != 0 && l.At.Ino != now.Ino {
		return nil, replaced(dir)
	}
	place, err := d.CheckHere(dir)
	if err == nil && place.Dir != dir {
		err = replaced(dir) // by a link
	}
	if err != nil {
		return nil, err
	}
	place.Objects = l.Spec.Files.Objects // as they were when no agent of the thread had run
	if !unguarded.Build {
		if place.Named, err = place.NamedOutside(); err != nil {
			return nil, err
		}
	}
	if l.At != now {
		l.At = now
		data, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		err = atomicfile.Write(d.dir(l.Spec.ID, "spec.json"), data, 0o600)
		if err != nil {
			return nil, err
		}
	}
	return &place, nil
}

// CheckFiles implements executor.InPlace.
func (d *Driver) CheckFiles(_ context.Context, id thole.ExecutorID) error {
	l, err := d.label(id)
	if errors.Is(err, executor.ErrNotFound) || err == nil && !l.Spec.Files.InPlace() {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := identify(l.Spec.Files.Dir)
	if err == nil && l.At.Ino != 0 && l.At.Ino != now.Ino {
		err = replaced(l.Spec.Files.Dir)
	}
	return err
}

// showFiles adds to a box what agents work on: the executor's own workspace, or the
// directory of the user. from stages a path.
func (d *Driver) showFiles(box *sandbox.Box, id thole.ExecutorID, place *repository.Place, objects []string, from, lent func(string) string) {
	if place == nil {
		box.Add("--bind", from(d.dir(id, "workspace")), sandboxWorkspace)
	} else {
		if place.Top != "" && place.Top != place.Dir {
			box.Add("--ro-bind", lent(place.Top), place.Top)
		}
		for _, dir := range append(place.Outside(), place.Dir) {
			box.Add("--bind", lent(dir), dir)
		}
	}
	for _, dir := range objects {
		if os.Geteuid() == 0 && sandbox.CheckLend(dir) == nil {
			box.Add("--ro-bind", lent(dir), dir)
			continue
		}
		box.Add("--ro-bind", from(dir), dir)
	}
}
