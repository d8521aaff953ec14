package fold_test

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/event/fold"
)

func TestTitle(t *testing.T) {
	for message, want := range map[string]string{
		"":                                  "",
		" \n\t ":                            "",
		"Fix the tests\nand then more":      "Fix the tests",
		"\n\n  # Fix   the tests":           "Fix the tests",
		"```go\nfunc main() {}\n```":        "func main() {}",
		"- [ ] one\n- [ ] two":              "[ ] one",
		"`make` fails":                      "make` fails",
		"-v does nothing":                   "-v does nothing",
		"#12 is open again":                 "#12 is open again",
		"…":                                 "…",
		"  Fix\tit \nand more":              "Fix it",
		"\x1b]52;c;evil\x07 hi":             "]52;c;evil hi",
		strings.Repeat("größe", 30):         strings.Repeat("größe", 12) + "…",
		"a\x1b[31mb\x00\u202ec":             "a[31mbc",
		strings.Repeat("word ", 30):         strings.TrimSpace(strings.Repeat("word ", 12)) + "…",
		strings.Repeat("x", 100):            strings.Repeat("x", 60) + "…",
		strings.Repeat("字", 60):             strings.Repeat("字", 60),
		strings.Repeat("x", 30) + " " + "y": strings.Repeat("x", 30) + " y",
	} {
		if got := fold.Title(message); got != want {
			t.Errorf("Title(%q) = %q, want %q", message, got, want)
		}
	}
	named := fold.Thread{Name: "mine", Preview: "Fix the tests"}
	if got := named.Title(); got != "mine" {
		t.Errorf("a name does not win: %q", got)
	}
}
