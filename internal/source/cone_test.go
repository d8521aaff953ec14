package source_test

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/source"
)

func TestCone(t *testing.T) {
	for text, want := range map[string]string{
		"/*\n!/*/\n":                            "top",
		"/*\n!/*/\n/a/\n":                       "top a/1 a/b/2 a/b/c/3",
		"/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n/x*y/\n": "no",
		"/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n":        "top a/1 a/b/2 a/b/c/3",
		"/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n!/a/b/*/\n/a/b/c/\n/we\\*ird\\\\/": "top a/1 a/b/2 a/b/c/3 we*ird\\/4",
		"/*\n!/*/\n/a/\n!/a/*/": "top a/1",
		"/*\n":                  "top a/1 a/b/2 a/b/c/3 b/5 we*ird\\/4",
		"/a/\n":                 "no", "": "no", "*.go\n": "no", "/*\n!/*/\n!/a/*/\n": "no", "/*\n!/*/\n/a\n": "no", "/*\n!/*/\n/*/\n": "no", "/*\n!a/\n": "no",
	} {
		cone, ok := source.ParseCone(text)
		var has []string
		for _, file := range []string{"top", "a/1", "a/b/2", "a/b/c/3", "b/5", "we*ird\\/4"} {
			if cone.Has(file) {
				has = append(has, file)
			}
		}
		got := strings.Join(has, " ")
		if !ok {
			got = "no"
		}
		if got != want {
			t.Errorf("%q has %s, want %s", text, got, want)
		}
	}
}
