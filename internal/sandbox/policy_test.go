package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/protocol/exec"
)

func entry(path, access string) exec.FSEntry {
	return exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathPath, Path: exec.FormatURI(path)}, Access: access}
}

func compile(t *testing.T, entries ...exec.FSEntry) *Policy {
	t.Helper()
	p, err := Compile(&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsManaged,
		Network: exec.NetworkRestricted, FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: entries}}}, Place{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheMoreSpecificEntryWins(t *testing.T) {
	p := compile(t, entry("/x/w/no", exec.AccessNone), entry("/x", exec.AccessRead), entry("/x/w", exec.AccessWrite),
		entry("/x/w/no/yes", exec.AccessRead), entry("/e", exec.AccessRead), entry("/e", exec.AccessWrite),
		entry("/d", exec.AccessWrite), entry("/d", exec.AccessDeny))
	for path, want := range map[string]Access{
		"/": None, "/x": Read, "/x/f": Read, "/xy": None, "/x/w": Write, "/x/w/f": Write, "/x/wide": Read,
		"/x/w/no": None, "/x/w/no/f": None, "/x/w/no/yes/f": Read, "/e/f": Write, "/d/f": None, "/other": None,
	} {
		if got := p.Access(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if !p.Denied("/x/w/no/f") || p.Denied("/other") || p.Denied("/x/w/no/yes") {
		t.Error("Denied confuses denied with not listed")
	}
}

// TestProfilesAreBounded: looking up each name of a long path at every level, or comparing all
// of many entries, would keep a processor busy for hours.
func TestProfilesAreBounded(t *testing.T) {
	long := "/x" + strings.Repeat("/a", 1<<20)
	many := make([]exec.FSEntry, maxEntries+1)
	roots := make([]string, maxEntries)
	for i := range many {
		many[i] = entry("/x", exec.AccessRead)
	}
	for i := range roots {
		roots[i] = "file:///x"
	}
	project := exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathSpecial, Value: &exec.FSSpecial{Kind: exec.SpecialProjectRoots}}, Access: exec.AccessRead}
	tmp := exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathSpecial, Value: &exec.FSSpecial{Kind: exec.SpecialSlashTmp, Subpath: &long}}, Access: exec.AccessRead}
	glob := exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathGlob, Pattern: long}, Access: exec.AccessDeny}
	uri := exec.FormatURI(long)
	for name, c := range map[string]struct {
		entries []exec.FSEntry
		cwd     *string
		roots   []string
		at      Place
	}{
		"a path":        {entries: []exec.FSEntry{entry(long, exec.AccessRead)}},
		"below another": {entries: []exec.FSEntry{tmp}},
		"a pattern":     {entries: []exec.FSEntry{glob}},
		"its directory": {cwd: &uri},
		"ours":          {at: Place{Cwd: long}},
		"a root":        {roots: []string{uri}},
		"entries":       {entries: many},
		"roots":         {roots: slices.Concat(roots, []string{"file:///x"})},
		"both":          {entries: []exec.FSEntry{project, project, project}, roots: roots},
	} {
		_, err := Compile(&exec.Sandbox{WindowsLevel: "disabled", Cwd: c.cwd, WorkspaceRoots: c.roots, Permissions: exec.Permissions{Type: exec.PermissionsManaged,
			Network: exec.NetworkRestricted, FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: c.entries}}}, c.at)
		if !errors.Is(err, ErrUnenforceable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGlobsDenyWhatIsBelowThem(t *testing.T) {
	g := exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathGlob, Pattern: "/w/**/.env*"}, Access: exec.AccessDeny}
	p := compile(t, entry("/w", exec.AccessWrite), g)
	for path, want := range map[string]Access{"/w/a": Write, "/w/.env": None, "/w/a/b/.env.local": None, "/w/.envs/x": None, "/w/env": Write} {
		if got := p.Access(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

func TestPathsAreRealOnes(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/real", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", dir+"/alias"); err != nil {
		t.Fatal(err)
	}
	p := compile(t, entry(dir+"/alias", exec.AccessWrite), entry(dir+"/alias/missing/x", exec.AccessDeny))
	if p.Access(dir+"/real/f") != Write || p.Access(dir+"/real/missing/x/y") != None {
		t.Error("an entry through a link does not hold for the real path")
	}
}

func TestDisabledAndExternalConfineNothing(t *testing.T) {
	for _, kind := range []string{exec.PermissionsDisabled, exec.PermissionsExternal} {
		p, err := Compile(&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: kind}}, Place{})
		if err != nil || p.Confines() || p.RestrictsFiles() || p.Access("/etc") != Write {
			t.Errorf("%s: %v", kind, err)
		}
	}
	var none *Policy
	if none.Confines() || none.RestrictsFiles() || none.Access("/") != Write || none.Denied("/") {
		t.Error("no policy must allow everything")
	}
}

func TestAGlobMayOnlyDeny(t *testing.T) {
	_, err := Compile(&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsManaged, Network: exec.NetworkEnabled,
		FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: []exec.FSEntry{{Path: exec.FSPath{Type: exec.FSPathGlob, Pattern: "/x/*"}, Access: exec.AccessWrite}}}}}, Place{})
	if !errors.Is(err, ErrUnenforceable) {
		t.Fatal(err)
	}
}

// TestPlantedLinks: a link that a program may have laid gives it nothing.
func TestPlantedLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/w/x", "/w/y", "/out/sub", "/safe"} {
		if err := os.MkdirAll(dir+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"/w/x/planted": "/", "/w/relative": "../out", "/w/twice": "relative/sub", "/w/inside": "y", "/w/.git": "../out", "/safe/link": "../out"} {
		if err := os.Symlink(target, dir+name); err != nil {
			t.Fatal(err)
		}
	}
	tried := func(entries ...exec.FSEntry) (*Policy, error) {
		return Compile(&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsManaged,
			Network: exec.NetworkRestricted, FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: entries}}}, Place{Cwd: "/"})
	}
	w := entry(dir+"/w", exec.AccessWrite)
	for _, e := range []exec.FSEntry{
		entry(dir+"/w/x/planted", exec.AccessWrite), entry(dir+"/w/x/planted", exec.AccessRead), entry(dir+"/w/x/planted/etc/missing", exec.AccessWrite),
		entry(dir+"/w/relative", exec.AccessWrite), entry(dir+"/w/twice", exec.AccessRead), entry(dir+"/w/relative/sub", exec.AccessWrite),
	} {
		if _, err := tried(w, e, e); !errors.Is(err, ErrUnenforceable) {
			t.Errorf("%+v is believed: %v", e.Path, err)
		}
	}
	for _, e := range []exec.FSEntry{
		entry(dir+"/w/inside", exec.AccessWrite),       // it is writable already
		entry(dir+"/w/relative", exec.AccessDeny),      // it gives nothing
		entry(dir+"/safe/link", exec.AccessWrite),      // nobody inside laid it
		entry(dir+"/w/x/planted/usr", exec.AccessRead), // it is readable already
	} {
		if _, err := tried(w, e, entry("/usr", exec.AccessRead)); err != nil {
			t.Errorf("%+v: %v", e.Path, err)
		}
	}
	// A protection that nobody asked for neither gives nor refuses.
	if p, err := tried(w); err != nil || p.Access(dir+"/out/f") != None || p.Access(dir+"/w/.git") != Read {
		t.Error(err)
	}
}

// TestOwnPlacesStayHidden: a profile that names a place in the server's home, or a link to
// one, shows nothing of it.
func TestOwnPlacesStayHidden(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := root + "/home"
	if err := errors.Join(os.MkdirAll(home+"/run", 0o755), os.Symlink(home+"/run", root+"/link")); err != nil {
		t.Fatal(err)
	}
	for _, own := range [][]string{{home}, nil} {
		p, err := Compile(&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsManaged, Network: exec.NetworkEnabled,
			FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: []exec.FSEntry{
				entry(root, exec.AccessRead), entry(home+"/run", exec.AccessWrite), entry(home, exec.AccessRead), entry(root+"/link", exec.AccessWrite), entry(home+"/made-later", exec.AccessRead),
			}}}}, Place{Cwd: root, Own: own})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{home, home + "/run", home + "/run/token", home + "/made-later"} {
			if got := p.Access(path); (got == None) != (own != nil) {
				t.Errorf("own %v: %s has access %v", own, path, got)
			}
		}
		if p.Access(root) != Read {
			t.Error("the rest is shown")
		}
	}
}
