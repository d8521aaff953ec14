package executord

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

func laid(t *testing.T, dir string, in ...thole.Input) []thole.Input {
	t.Helper()
	out, err := layFiles(dir, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFilesOfAMessageLieInTheWorkspace(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, ".thole/files", name) }
	msg := []thole.Input{{Type: "text", Text: "look"}, thole.File("a.csv", "text/csv", []byte("1,2\n"))}
	for range 2 { // a run that is taken up again lays nothing twice
		out := laid(t, dir, msg...)
		if len(out) != 2 || out[1].Text != "look" || out[0].Type != "text" || !strings.Contains(out[0].Text, at("a.csv")+"\n") {
			t.Fatalf("the agent is told %+v", out)
		}
	}
	if out := laid(t, dir, thole.File("a.csv", "text/csv", []byte("others\n"))); !strings.Contains(out[0].Text, at("a-2.csv")+"\n") {
		t.Errorf("another file of the same name: %q", out[0].Text)
	}
	for name, want := range map[string]string{"a.csv": "1,2\n", "a-2.csv": "others\n", ".gitignore": "*\n"} {
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("more than the directory of files: %v", names)
	}
}

// What an agent left in the place of a file is neither followed nor changed.
func TestFilesOfAMessageFollowNoLink(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(dir string) error{
		"the directory": func(dir string) error { return os.Symlink(outside, filepath.Join(dir, ".thole")) },
		"the one below": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, ".thole"), 0o755), os.Symlink(outside, filepath.Join(dir, ".thole/files")))
		},
		"the file": func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, ".thole/files"), 0o755), os.Symlink(victim, filepath.Join(dir, ".thole/files/victim")))
		},
	} {
		dir := t.TempDir()
		if err := plant(dir); err != nil {
			t.Fatal(err)
		}
		out, err := layFiles(dir, []thole.Input{thole.File("victim", "text/plain", []byte("taken"))})
		if name == "the file" {
			if err != nil || !strings.Contains(out[0].Text, "victim-2\n") {
				t.Errorf("%s: %v, %v", name, out, err)
			}
		} else if thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := os.ReadFile(victim); string(got) != "mine" {
			t.Errorf("%s: wrote outside: %q", name, got)
		}
		if names, _ := os.ReadDir(outside); len(names) != 1 {
			t.Errorf("%s: laid outside: %v", name, names)
		}
	}
}
