package repository

import (
	"os"
	"slices"
	"strconv"
	"testing"
)

// A changed configuration counts as harmless only where git runs nothing and goes nowhere
// else because of it.
func TestChanged(t *testing.T) {
	r := newRig(t)
	r.init("main")
	r.git("main", "config", "core.hooksPath", "/mine")
	config := r.path("main/.git/config")
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Locate(r.path("main"), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Guard()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Release()
	link := func() {
		if err := errs(os.WriteFile(r.path("same"), before, 0o644), os.Remove(config), os.Link(r.path("same"), config)); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		do    func()
		names []string
		ok    bool
	}{
		"nothing":              {func() {}, nil, true},
		"an upstream":          {func() { r.git("main", "config", "branch.a.b.remote", "origin") }, []string{"branch.a.b.remote"}, true},
		"an editor's":          {func() { r.git("main", "config", "branch.x.vscode-merge-base", "origin/main") }, []string{"branch.x.vscode-merge-base"}, true},
		"a remote":             {func() { r.git("main", "remote", "add", "o", "https://example.org/x") }, []string{"remote.o.url", "remote.o.fetch"}, true},
		"a remote's program":   {func() { r.git("main", "config", "remote.o.url", "ext::sh -c x") }, nil, false},
		"a remote like -x":     {func() { r.git("main", "config", "remote.o.url", "--upload-pack=x") }, nil, false},
		"a program":            {func() { r.git("main", "config", "core.fsmonitor", "x") }, nil, false},
		"a submodule's":        {func() { r.git("main", "config", "submodule.x.update", "!x") }, nil, false},
		"another work tree":    {func() { r.git("main", "config", "core.worktree", "/") }, nil, false},
		"other hooks":          {func() { r.git("main", "config", "core.hooksPath", "/other") }, nil, false},
		"no hooks any more":    {func() { r.git("main", "config", "--unset", "core.hooksPath") }, nil, false},
		"a file":               {func() { r.git("main", "config", "include.path", "/x") }, nil, false},
		"what git cannot read": {func() { r.write("main/.git/config", string(before)+"[") }, nil, false},
		"a second name":        {link, nil, false},
		"a link":               {func() { link(); _ = os.Remove(config); _ = os.Symlink(r.path("same"), config) }, nil, false},
		"no file":              {func() { _ = os.Remove(config) }, nil, false},
	} {
		c.do()
		if names, ok := g.Changed(config); ok != c.ok || !slices.Equal(names, c.names) {
			t.Errorf("%s: %v, %v", what, names, ok)
		}
		if err := errs(os.RemoveAll(r.path("same")), os.RemoveAll(config), os.WriteFile(config, before, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := g.Changed(r.path("main/.git/info")); ok {
		t.Error("another path counts as configuration")
	}
}

// A file in the place of one that is guarded is never taken for it: file systems give the
// number of a file that is gone to the next one.
func TestWhatIsGuardedKeepsItsNumber(t *testing.T) {
	r := newRig(t)
	r.init("main")
	p, err := Locate(r.path("main"), anywhere)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Guard()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Release()
	config := r.path("main/.git/config")
	i := slices.IndexFunc(g.Mounts, func(m Mount) bool { return m.Path == config })
	for n := range 20 {
		r.git("main", "config", "branch.x.merge", strconv.Itoa(n))
		if fi, err := os.Lstat(config); err != nil || os.SameFile(fi, g.Mounts[i].Was) {
			t.Fatalf("after %d changes it looks like the same file, %v", n+1, err)
		}
	}
}
