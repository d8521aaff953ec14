package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/sandbox/seccomp"
)

// boxed is git in a box of its own that shows the system's programs and what the command
// names, and reaches nobody. It ends with us.
func (r *Runner) boxed(ctx context.Context, bwrap, program string, git []string, c Cmd) (_ exec.Cmd, err error) {
	uid := c.UID
	if uid == 0 {
		uid = r.UID
	}
	if os.Geteuid() != 0 || uid == os.Geteuid() {
		uid = 0
	}
	var staged []string
	from := func(path string) string {
		if uid == 0 || r.Self == "" {
			return path
		}
		staged = append(staged, path)
		return sandbox.Staged(len(staged) - 1)
	}
	box := sandbox.NewBox("--unshare-cgroup-try", "--unshare-net", "--die-with-parent", "--new-session").Kernel().System().Add("--tmpfs", "/tmp")
	defer func() {
		if err != nil {
			for _, f := range box.Files() {
				f.Close()
			}
		}
	}()
	refuses, known := r.refuses.Load(bwrap)
	if !known {
		refuses = sandbox.RefusesNested(ctx, bwrap)
		r.refuses.Store(bwrap, refuses)
	}
	if refuses == true {
		box.Add("--disable-userns")
	}
	program, extra, err := r.installed(program)
	if err != nil {
		return exec.Cmd{}, err
	}
	for _, p := range extra {
		box.Add("--ro-bind", from(p), p)
	}
	for _, m := range mounts(c.Show, c.Write) {
		if !filepath.IsAbs(m.path) {
			return exec.Cmd{}, fmt.Errorf("run git: %q is not an absolute path", m.path)
		}
		if _, err := os.Lstat(m.path); err != nil {
			return exec.Cmd{}, fmt.Errorf("run git: %w", err)
		}
		box.Add(m.flag, from(m.path), m.path)
	}
	for _, path := range c.Hide {
		box.Add("--ro-bind", "/dev/null", path)
	}
	if err := box.Filter(seccomp.Restricted); err != nil {
		return exec.Cmd{}, err
	}
	dir := c.Dir
	if dir == "" {
		dir = "/"
	}
	args := append([]string{bwrap}, box.Command(dir, append([]string{program}, git...)...)...)
	cmd := exec.Cmd{Path: bwrap, Args: args, Dir: "/", ExtraFiles: box.Files()}
	switch {
	case uid == 0:
	case r.Self == "":
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	default:
		cmd.Path = r.Self
		head := append([]string{r.Self, "executor", "box", strconv.Itoa(uid), strconv.Itoa(len(box.Files())), strconv.Itoa(len(staged))}, staged...)
		cmd.Args = slices.Concat(head, args)
	}
	return cmd, nil
}

// mount is one path that a box shows.
type mount struct{ flag, path string }

// mounts orders what a box shows: parents first, so that none hides another, and what
// is writable over what is not.
func mounts(show, write []string) []mount {
	var all []mount
	for _, p := range show {
		all = append(all, mount{"--ro-bind", filepath.Clean(p)})
	}
	for _, p := range write {
		all = append(all, mount{"--bind", filepath.Clean(p)})
	}
	slices.SortStableFunc(all, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return all
}

// installed is where git is and what has to be shown for it besides the system's
// directories: where it was installed elsewhere, the whole of that.
func (r *Runner) installed(program string) (string, []string, error) {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", nil, fmt.Errorf("look at git: %w", err)
	}
	if sandbox.InSystem(real) {
		return real, nil, nil
	}
	prefix := filepath.Dir(filepath.Dir(real))
	if home, err := os.UserHomeDir(); prefix == "/" || err == nil && (home == prefix || strings.HasPrefix(home, prefix+"/")) {
		return "", nil, errors.New("git at " + program + " is installed next to your own files, which its box would show; install it with the system's package manager")
	}
	return real, []string{prefix}, nil
}
