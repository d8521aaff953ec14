package repository

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// listed is what git finds in a configuration, each entry with a NUL at its end.
func listed(t *testing.T, path string) (string, error) {
	cmd := exec.Command(lab.Git(t), "config", "--list", "--includes", "--null", "--file", path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.Output()
	return string(out), err
}

// checkAgainstGit reads a configuration as git does, or refuses it as git does.
func checkAgainstGit(t *testing.T, text []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := entries(path)
	for _, e := range all {
		if strings.HasPrefix(e.name, "include") { // of other files, and of some without a value, git says more
			return
		}
	}
	want, refused := listed(t, path)
	if (err != nil) != (refused != nil) {
		t.Fatalf("%q: %v, and git %v", text, err, refused)
	}
	if err != nil {
		return
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return // git prints names and values up to there, which it compares whole
	}
	got := ""
	for _, e := range all {
		got += e.name
		if e.set {
			got += "\n" + e.value
		}
		got += "\x00"
	}
	if got != want {
		t.Fatalf("%q: %q, git has %q", text, got, want)
	}
}

// Values end where they end for git: at a comment, and not at one in quotes.
func TestConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"[core]\nhooksPath = .githooks # team\n":                                  ".githooks",
		"[core]\nhooksPath = ../shared ; team\n":                                  "../shared",
		"[core]\nhooksPath=.githooks;team":                                        ".githooks",
		"[core] hooksPath = \"a # b\" ; c":                                        "a # b",
		"[core]\nhooksPath = a\\\n  b # c\\\nx = 1":                               "a  b",
		"[core]\nhooksPath = \"a\\\nb\"":                                          "ab",
		"[core]\nhooksPath = .git\"ho\"oks":                                       ".githooks",
		"[core]\nhooksPath = \\\"a\\\\b\\\"":                                      "\"a\\b\"",
		"[CORE]\r\nHooksPath = a \t \r\n":                                         "a",
		"\xef\xbb\xbf[core]hooksPath=a":                                           "a",
		"[core]\n# hooksPath = b\n;\n\thooksPath = a b":                           "a b",
		"[core]\nhooksPath = b\n[core \"x\"]\nhooksPath = c\n[core.x]hooksPath=c": "b",
		"[core]hooksPath = a\n[remote \"a]\\\"#\"] hooksPath = \"\"":              "a",
		"[core]\nhooksPath =":                                                     "",
	} {
		checkAgainstGit(t, []byte(text))
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := configured(path, "core.hookspath"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"[core", "[core x]", "[core \"x]\n", "[core \"x\" ]", "[core]\nhooksPath \"x\"", "[core]\nhooksPath = \"x\n", "[core]\nhooksPath = \\x", "=", "[co_re]", "[core]\n1 = 2", "\xef\xbb"} {
		checkAgainstGit(t, []byte(text))
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add([]byte("[core]\n\thooksPath = a # b\n[remote \"x\"]\n\turl = \"c;\\\n\\t\" d\\\n e\n"))
	f.Add([]byte("\xef\xbb\xbf[a.B]C\r\n;\n[d \"e\\\"\"]f=\"\"g\t h \r\ni = \\b\\n\\\\"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 4<<10 {
			checkAgainstGit(t, text)
		}
	})
}
