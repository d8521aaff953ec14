package sandbox

import (
	"errors"
	"os"
	"path/filepath"
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
