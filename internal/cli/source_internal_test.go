package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/protocol/app"
)

// An address for one of git's helpers is no path: the server says which transports it has.
func TestAnAddressIsNoPath(t *testing.T) {
	at := t.TempDir()
	if err := os.Mkdir(filepath.Join(at, "odd::name"), 0o700); err != nil {
		t.Fatal(err)
	}
	for repo, want := range map[string]string{
		"ext::sh -c x": "ext::sh -c x", "ftp://h/r": "ftp://h/r", "https://h/r": "https://h/r", "h:r": "h:r", "r": filepath.Join(at, "r"), "odd::name": filepath.Join(at, "odd::name"),
	} {
		if got, err := (&sourceFlags{repo: repo, dir: at}).choose("m"); err != nil || got.Repo != want {
			t.Errorf("%s: %+v, %v", repo, got, err)
		}
	}
}

// What there is to do with changes is said only where there are some, and what is not known is
// looked at first.
func TestWhatToDoNext(t *testing.T) {
	for _, c := range []struct {
		kind    string
		changed int
		steps   string
	}{
		{"branch", 2, "diff apply pull send"}, {"branch", 0, "send"}, {"branch", -1, "diff send"},
		{"here", 1, "diff undo send"}, {"here", 0, "send"}, {"empty", 1, "diff export send"}, {"empty", 0, "send"},
	} {
		var out bytes.Buffer
		(&Env{}).printNext(&out, app.ThreadView{Thread: app.Thread{ID: "T"}, Files: &app.Source{Kind: c.kind}}, c.changed)
		var steps []string
		for line := range strings.Lines(out.String()) {
			if words := strings.Fields(line); len(words) > 3 {
				at := strings.Index(line, " T")
				before := strings.Fields(line[:at])
				steps = append(steps, before[len(before)-1])
			}
		}
		if got := strings.Join(steps, " "); got != c.steps {
			t.Errorf("%s with %d: %s, want %s\n%s", c.kind, c.changed, got, c.steps, out.String())
		}
	}
}

// The empty .git that an executor holds a place with is no repository: a run there begins
// without files, as it does without that thread.
func TestAnEmptyDotGitIsNoRepository(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "below")
	if err := os.MkdirAll(filepath.Join(below, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if inRepository(below) {
		t.Error("an empty directory was taken for a repository")
	}
	for file, text := range map[string]string{filepath.Join(below, ".git", "HEAD"): "ref: refs/heads/main\n", filepath.Join(top, ".git"): "gitdir: x\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil || !inRepository(below) {
			t.Errorf("%s makes no repository: %v", file, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// Who stands in a bare repository gets a branch of it.
func TestABareRepositoryIsOne(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"objects", "refs", "hooks"} {
		if inRepository(filepath.Join(top, name)) {
			t.Errorf("in %s without HEAD", name)
		}
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(top, "HEAD"), 0o755); err != nil || inRepository(top) { // as executors hold its place
		t.Errorf("with a directory HEAD, %v", err)
	}
	if err := os.Remove(filepath.Join(top, "HEAD")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !inRepository(top) || !inRepository(filepath.Join(top, "hooks")) {
		t.Error("it is in none")
	}
}
