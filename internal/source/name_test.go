package source_test

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Whatever a person says first, git takes the name that is made of it.
func TestEveryMessageNamesABranch(t *testing.T) {
	git, err := exec.LookPath("git")
	lab.Need(t, "git", err)
	for message, want := range map[string]string{
		"Fix the login bug":            "fix-the-login-bug-",
		"":                             "work-",
		"  \n\t ":                      "work-",
		"…!?**--":                      "work-",
		"-rf --force":                  "rf-force-",
		"../../etc/passwd":             "etc-passwd-",
		"a..b.lock":                    "a-b-lock-",
		"refs/heads/main@{1}~":         "refs-heads-main-1-",
		"Überprüfe die Größe":          "überprüfe-die-größe-",
		"修复登录错误":                       "修复登录错误-",
		strings.Repeat("修复", 20):       strings.Repeat("修复", 6) + "修-",
		"a \u0301 b":                   "a-b-",
		"\u0301\u0302":                 "work-",
		"🚀 ship it":                    "ship-it-",
		"a\x00b\x7fc\u202ed":           "a-b-c-d-",
		"\xff\xfe broken utf8":         "broken-utf8-",
		"e\u0301te\u0301":              "e\u0301te\u0301-",
		strings.Repeat("word ", 100):   strings.Repeat("word-", 8),
		strings.Repeat("verylong", 50): strings.Repeat("verylong", 5) + "-",
	} {
		name := source.Slug(message, "01900000-0000-7000-8000-000000000001")
		if len(name) != len(want)+4 || !strings.HasPrefix(name, want) {
			t.Errorf("%.40q is named %q, want %q and four characters", message, name, want)
		}
		if !utf8.ValidString(name) {
			t.Errorf("%.40q: %q is not UTF-8", message, name)
		}
		if out, err := exec.Command(git, "check-ref-format", "--branch", source.BranchPrefix+name).CombinedOutput(); err != nil {
			t.Errorf("git refuses %q: %s", name, out)
		}
		if name != source.Slug(message, "01900000-0000-7000-8000-000000000001") || name == source.Slug(message, "01900000-0000-7000-8000-000000000002") {
			t.Errorf("%q: the same thread must get the same name, and another another", name)
		}
	}
}
