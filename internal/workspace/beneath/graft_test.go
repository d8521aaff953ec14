//go:build unix

package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// grafted is a directory with a file, a name that is covered and one that is shadowed.
func grafted(t *testing.T) (d *Dir, dir, data string) {
	t.Helper()
	dir, data = t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "file"): "file", filepath.Join(dir, "data", "secret"): "covered", filepath.Join(dir, "data.own"): "shadowed",
		filepath.Join(data, "sub", "talk"): "talk",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	to, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	d.Graft("data", "data.own", to)
	t.Cleanup(func() { d.Close() })
	return d, dir, data
}

func read(t *testing.T, d *Dir, path string) string {
	t.Helper()
	at, name, err := d.Parent(path, false)
	if err != nil {
		return err.Error()
	}
	defer at.Close()
	f, err := at.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	buf := make([]byte, 100)
	n, _ := f.Read(buf)
	return string(buf[:n])
}

func TestAGraftLeadsElsewhere(t *testing.T) {
	d, dir, data := grafted(t)
	names, err := d.Names()
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"data", "data.own", "file"}) {
		t.Errorf("names: %q, %v", names, err)
	}
	for path, want := range map[string]string{"file": "file", "data/sub/talk": "talk", "data.own/secret": "covered"} {
		if got := read(t, d, path); got != want {
			t.Errorf("%s is %q", path, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "sub")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the test proves nothing")
	}
	at, name, err := d.Parent("data/sub/new", false)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if err := at.Mkdir(name, 0o700); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "sub", "new")); err != nil {
		t.Error(err)
	}
	if err := d.RemoveAll("data.own"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is covered: %v", err)
	}
	if names, err = d.Names(); err != nil || len(names) != 2 {
		t.Errorf("names: %q, %v", names, err)
	}
}

// A graft stays where it is, whatever is done to its name.
func TestAGraftStays(t *testing.T) {
	d, dir, data := grafted(t)
	before, err := os.ReadFile(filepath.Join(dir, "data.own"))
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"renamed": d.Rename("data", "other"), "replaced": d.Rename("file", "data"), "made": d.Mkdir("data", 0o700), "linked over": d.Symlink("/", "data"),
		"linked": d.HardLink(d, "file", "data"), "removed": d.Remove("data"),
	} {
		if err == nil {
			t.Errorf("it was %s", what)
		}
	}
	if f, err := d.Create("data", 0o600); err == nil {
		f.Close()
		t.Error("a file was made in its place")
	}
	if err := d.Chmod("data", 0); err != nil {
		t.Error(err)
	}
	if st, err := d.Lstat("data"); err != nil || st.Kind != Folder || st.Mode != 0o700 {
		t.Errorf("it is %+v, %v", st, err)
	}
	if moved, err := d.Claim("data/sub/talk", 0o700); err != nil || len(moved) != 1 || moved[0] != [2]string{"data/sub/talk", "data/sub/talk.moved-aside"} {
		t.Errorf("claimed: %q, %v", moved, err)
	}
	if err := d.Clear(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) != 0 {
		t.Errorf("cleared it holds %v, %v", left, err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "data.own")); err != nil || string(after) != string(before) {
		t.Errorf("what cannot be seen was cleared: %q, %v", after, err)
	}
}

// Nowhere holds nothing but a graft, and nothing can be put there.
func TestNowhere(t *testing.T) {
	d, err := Nowhere()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	to, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d.Graft("data", "data.own", to)
	if names, err := d.Names(); err != nil || !slices.Equal(names, []string{"data"}) {
		t.Errorf("names: %q, %v", names, err)
	}
	if _, err := d.Lstat("file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file: %v", err)
	}
	for what, err := range map[string]error{"directory": d.Mkdir("x", 0o700), "link": d.Symlink("/", "x"), "covered name": d.Mkdir("data.own", 0o700)} {
		if !errors.Is(err, syscall.ENOENT) {
			t.Errorf("a %s: %v", what, err)
		}
	}
	at, name, err := d.Parent("data/a/b", true)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if err := at.Mkdir(name, 0o700); err != nil {
		t.Error(err)
	}
	if err := d.Flush(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
