//go:build linux

package sandbox

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// scanLimit bounds the search for files that glob patterns deny.
const scanLimit = 50_000

// Wrapper runs programs in a sandbox.
type Wrapper struct {
	helper []string

	once  sync.Once
	bwrap string
	err   error
}

// NewWrapper makes a Wrapper. helper executes a program under another argv[0];
// it may be empty.
func NewWrapper(helper []string) *Wrapper { return &Wrapper{helper: helper} }

// Wrapped is a command line that enters the sandbox. Files become descriptors 3
// and up; the caller closes them after the start.
type Wrapped struct {
	Path  string
	Argv  []string
	Files []*os.File
}

// Wrap returns the command that runs program with argv under p. argv[0] is
// replaced by arg0 unless that is empty.
func (w *Wrapper) Wrap(p *Policy, dir, program string, argv []string, arg0 string) (_ *Wrapped, err error) {
	w.once.Do(w.probe)
	if w.err != nil {
		return nil, w.err
	}
	out := &Wrapped{Path: w.bwrap}
	defer func() {
		if err != nil {
			for _, f := range out.Files {
				f.Close()
			}
		}
	}()
	box := NewBox("--die-with-parent")
	if !p.network {
		box.Add("--unshare-net")
	}
	if err := p.mounts(box, out); err != nil {
		return nil, err
	}
	var run []string
	if arg0 != "" {
		if len(w.helper) == 0 {
			return nil, refuse("arg0 needs a helper")
		}
		run = append(append(run, w.helper...), arg0)
	}
	run = append(append(run, program), argv[1:]...)
	out.Argv = append([]string{"bwrap"}, box.Command(dir, run...)...)
	return out, nil
}

// probe looks for bubblewrap and sees whether namespaces are permitted here.
func (w *Wrapper) probe() {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		w.err = refuse("bubblewrap (bwrap) is not installed")
		return
	}
	w.bwrap = path
	args := NewBox("--die-with-parent", "--unshare-net", "--ro-bind", "/", "/").Kernel().Command("/", "/bin/true")
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		w.err = refuse("bubblewrap does not work here: %s", strings.TrimSpace(string(out)))
	}
}

// mounts lays the file system out: general rules first, specific ones over them.
func (p *Policy) mounts(box *Box, out *Wrapped) error {
	if !p.restricted {
		box.Add("--bind", "/", "/").Kernel()
		return nil
	}
	switch p.Access("/") {
	case Write:
		box.Add("--bind", "/", "/")
	case Read:
		box.Add("--ro-bind", "/", "/")
	default:
		box.Add("--tmpfs", "/")
	}
	box.Kernel()
	for i, r := range p.rules {
		if r.path == "/" || i+1 < len(p.rules) && p.rules[i+1].path == r.path {
			continue // the root is laid; of equals the last one decides
		}
		parent := p.above(r.path, i)
		if !r.exists {
			if err := r.refuseMissing(parent); err != nil {
				return err
			}
			continue
		}
		if parent == Write && r.access != Write {
			if fi, err := os.Lstat(r.path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
				return refuse("%s is a link in a writable directory", r.path)
			}
		}
		switch r.access {
		case Write:
			box.Add("--bind", r.path, r.path)
		case Read:
			box.Add("--ro-bind", r.path, r.path)
		case None:
			hidden, err := hide(r.path, out)
			if err != nil {
				return err
			}
			box.Add(hidden...)
		}
	}
	for _, l := range p.links { // /bin is a link on many systems
		if p.Access(l.path) == None && p.Access("/") == None {
			box.Add("--symlink", l.real, l.path)
		}
	}
	hidden, err := p.hideGlobs(out)
	box.Add(hidden...)
	return err
}

// above is the access that rules before the i-th give to the path's parent.
func (p *Policy) above(path string, i int) Access {
	access := None
	for _, r := range p.rules[:i] {
		if r.path != path && within(path, r.path) {
			access = r.access
		}
	}
	return access
}

// refuseMissing refuses a restriction on a path that does not exist yet where
// the program could create it.
func (r rule) refuseMissing(parent Access) error {
	if r.skip || r.access == Write || parent != Write {
		return nil
	}
	return refuse("%s does not exist and could be created", r.path)
}

// hide covers a path with something unreadable.
func hide(path string, out *Wrapped) ([]string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, refuse("cannot hide %s: %v", path, err)
	}
	if fi.IsDir() {
		return []string{"--perms", "0000", "--tmpfs", path, "--remount-ro", path}, nil
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, refuse("cannot hide %s: %v", path, err)
	}
	out.Files = append(out.Files, null)
	return []string{"--perms", "0000", "--ro-bind-data", strconv.Itoa(2 + len(out.Files)), path}, nil
}

// hideGlobs covers what matches a pattern now, below the fixed part of the
// pattern. A tree too large to search is refused.
func (p *Policy) hideGlobs(out *Wrapped) (args []string, err error) {
	for _, g := range p.globs {
		base, _ := doublestar.SplitPattern(g.pattern)
		seen := 0
		err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // unreadable for us is unreadable for the program
			}
			if seen++; seen > scanLimit {
				return refuse("too many files below %s to apply `%s`", base, g.pattern)
			}
			ok, _ := doublestar.Match(g.pattern, path)
			switch {
			case ok && d.Type()&fs.ModeSymlink == 0:
				hidden, err := hide(path, out)
				if err != nil {
					return err
				}
				args = append(args, hidden...)
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.IsDir() && strings.Count(strings.TrimPrefix(path, base), "/") >= p.scanDepth:
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return args, nil
}
