//go:build linux

package execserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/protocol/exec"
)

// TestNoPathLeadsOut builds random links and walks random paths through them:
// nothing outside the allowed directory is ever read, written or removed.
func TestNoPathLeadsOut(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(base, "case")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		in, out := root+"/in", root+"/out"
		for _, d := range []string{in + "/d/e", in + "/no", out + "/d"} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				rt.Fatal(err)
			}
		}
		secrets := []string{out + "/f", out + "/d/f", in + "/no/f"}
		for _, f := range append(secrets, in+"/f", in+"/d/f") {
			if err := os.WriteFile(f, []byte("secret"), 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		if err := os.WriteFile(in+"/f", []byte("mine"), 0o644); err != nil {
			rt.Fatal(err)
		}
		if err := os.WriteFile(in+"/d/f", []byte("mine"), 0o644); err != nil {
			rt.Fatal(err)
		}
		places := []string{"", "d/", "d/e/"}
		goal := rapid.SampledFrom([]string{"/out", "/out/d", "/out/f", "/in/no", "/in/no/f", "/in/d", "/in/d/../no", "/in/a", "/in/d/b", "/", "/nowhere"})
		start := rapid.SampledFrom([]string{root, "/proc/self/root" + root, "..", "../..", "../../..", root + "/in/..", "/proc/self/cwd"})
		for _, name := range []string{"a", "b", "c"} {
			target := start.Draw(rt, "start") + goal.Draw(rt, "goal")
			_ = os.Symlink(target, in+"/"+rapid.SampledFrom(places).Draw(rt, "where")+name)
		}
		s := scope{follow: rapid.Bool().Draw(rt, "follow"), policy: confine(rt, in, in+"/no")}
		word := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "no", "..", "new", "out"})
		path := in + "/" + rapid.SampledFrom(places).Draw(rt, "dir") + rapid.SampledFrom([]string{"a", "b", "c", ".."}).Draw(rt, "link") +
			"/" + strings.Join(rapid.SliceOfN(word, 0, 4).Draw(rt, "path"), "/")
		if data, err := s.readFile(path, anySize); err == nil && string(data) != "mine" {
			rt.Fatalf("read %s: %q", path, data)
		}
		switch rapid.IntRange(0, 3).Draw(rt, "act") {
		case 0:
			_ = s.writeFile(path, []byte("changed"))
		case 1:
			_ = s.remove(path, s.follow, true)
		case 2:
			_ = s.createDirectory(path, true)
		case 3:
			_ = s.copy(in+"/f", path, true)
		}
		for _, f := range secrets {
			if raw, err := os.ReadFile(f); err != nil || string(raw) != "secret" {
				rt.Fatalf("%s reached %s: %q, %v", path, f, raw, err)
			}
		}
		if got := listing(rt, out); got != "d d/f f" {
			rt.Fatalf("%s changed the outside: %s", path, got)
		}
	})
}

func confine(t interface{ Fatal(...any) }, open, deny string) *sandbox.Policy {
	entry := func(path, access string) exec.FSEntry {
		return exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathPath, Path: exec.FormatURI(path)}, Access: access}
	}
	p, err := sandbox.Compile(&exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{Type: exec.PermissionsManaged, Network: exec.NetworkRestricted,
		FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: []exec.FSEntry{entry(open, exec.AccessWrite), entry(deny, exec.AccessDeny)}}}}, sandbox.Place{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// No error shows whether a path that no entry lists is there, and what it is: it is
// absent, as in a sandbox that does not show it. What is denied by name is denied.
func TestUnlistedPathsAreAbsent(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/in/no", "/out/d"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(root+"/out/f", nil, 0o644), os.Symlink("../out/f", root+"/in/link"), os.Symlink("loop", root+"/out/loop")); err != nil {
		t.Fatal(err)
	}
	for _, follow := range []bool{true, false} {
		s := scope{follow: follow, policy: confine(t, root+"/in", root+"/in/no")}
		for _, path := range []string{"/out/f", "/out/nothing", "/out/d", "/out/d/nothing/x", "/out/f/x", "/out/loop/x", "/out", "/nothing/x"} {
			_, err := s.readFile(root+path, anySize)
			made := s.createDirectory(root+path+"/new", true)
			if codeOf(err) != exec.CodeNotFound || codeOf(made) != exec.CodeNotFound {
				t.Errorf("%s: read %v, written %v", path, err, made)
			}
		}
		if _, err := s.readFile(root+"/in/no/x", anySize); codeOf(err) != exec.CodeInvalidRequest {
			t.Errorf("a path that is denied by name: %v", err)
		}
	}
	s := scope{follow: true, policy: confine(t, root+"/in", root+"/in/no")}
	if _, err := s.readFile(root+"/in/link", anySize); codeOf(err) != exec.CodeNotFound {
		t.Errorf("a link that leads there: %v", err)
	}
}

// TestDeepTreesHoldFewDescriptors: a program makes a tree deeper than any path, with links
// that lead down it. A call that follows them, or removes it, holds a descriptor for each level.
func TestDeepTreesHoldFewDescriptors(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const links, each = 4, 400
	fd, err := unix.Open(root, unix.O_PATH, 0)
	for range links {
		if err == nil {
			err = unix.Symlinkat(strings.Repeat("d/", each)+"down", fd, "down")
		}
		for range each {
			if err != nil {
				t.Fatal(err)
			}
			_ = unix.Mkdirat(fd, "d", 0o755)
			var next int
			next, err = unix.Openat(fd, "d", unix.O_PATH, 0)
			unix.Close(fd)
			fd = next
		}
	}
	defer unix.Close(fd)
	if err := errors.Join(err, unix.Mkdirat(fd, "down", 0o755)); err != nil {
		t.Fatal(err)
	}
	s := scope{follow: true, policy: confine(t, root, root+"/no")}
	if _, err := s.list(root + strings.Repeat("/d", maxDepth/2)); err != nil {
		t.Errorf("an ordinary depth: %v", err)
	}
	if _, err := s.list(root + "/down"); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("%d levels by links: %v", links*each, err)
	}
	if err := s.createDirectory(root+strings.Repeat("/x", 1<<20), true); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("a path of a million names: %v", err)
	}
	if err := s.remove(root+"/d", true, false); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("%d levels to remove: %v", links*each, err)
	}
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	return int(fsError(err).Code)
}

func listing(t *rapid.T, root string) string {
	var names []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if path != root {
			names = append(names, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func anySize(int64) error { return nil }
