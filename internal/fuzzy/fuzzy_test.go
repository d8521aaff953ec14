package fuzzy_test

import (
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/fuzzy"
)

// The scores and places are those of codex app-server 0.166 for the same paths.
func TestScoresAreThoseOfCodex(t *testing.T) {
	for _, c := range []struct {
		query, path string
		score       uint32
		at          []uint32
	}{
		{"main", "src/main.go", 109, []uint32{4, 5, 6, 7}},
		{"main", "src/deep/main_test.go", 109, []uint32{9, 10, 11, 12}},
		{"Main", "cmd/domain.go", 76, []uint32{6, 7, 8, 9}},
		{"READ", "README.md", 109, []uint32{0, 1, 2, 3}},
		{"READ", ".git/refs/heads", 88, []uint32{5, 6, 12, 13}},
		{"d/m", "src/deep/main_test.go", 70, []uint32{4, 8, 9}},
		{"d/m", "cmd/domain.go", 48, []uint32{2, 3, 6}},
		{"mg", "src/main.go", 52, []uint32{4, 9}},
		{"mg", "src/deep/main_test.go", 47, []uint32{9, 19}},
		{"mg", "cmd/domain.go", 34, []uint32{6, 11}},
		{"mg", ".git/hooks/applypatch-msg.sample", 45, []uint32{22, 24}},
		{"mg", ".git/hooks/pre-merge-commit.sample", 44, []uint32{15, 18}},
		{"go", "src/main.go", 56, []uint32{9, 10}},
		{"go", ".git/objects", 52, []uint32{1, 5}},
		{"go", ".git/config", 42, []uint32{1, 6}},
		{"out", "out-link", 84, []uint32{0, 1, 2}},
		{"out", ".git/hooks/push-to-checkout.sample", 56, []uint32{24, 25, 26}},
		{"out", ".git/hooks/update.sample", 47, []uint32{7, 11, 15}},
	} {
		score, at, ok := fuzzy.Parse(c.query).Match(c.path)
		if !ok || score != c.score || !slices.Equal(at, c.at) {
			t.Errorf("%s in %s: %d at %v, %v; want %d at %v", c.query, c.path, score, at, ok, c.score, c.at)
		}
	}
}

func TestEveryWordMustFit(t *testing.T) {
	if _, _, ok := fuzzy.Parse("main zzz").Match("src/main.go"); ok {
		t.Error("a path without the second word fits")
	}
	if _, at, ok := fuzzy.Parse("go main").Match("src/main.go"); !ok || !slices.Equal(at, []uint32{4, 5, 6, 7, 9, 10}) {
		t.Errorf("at %v, %v", at, ok)
	}
	if !fuzzy.Parse("  ").Empty() {
		t.Error("spaces ask for something")
	}
}

// No input costs more than its bounds.
func FuzzMatch(f *testing.F) {
	f.Add("main", "src/main.go")
	f.Add("é/", "É/é")
	f.Fuzz(func(t *testing.T, query, path string) {
		_, at, ok := fuzzy.Parse(query).Match(path)
		if ok && (len(at) == 0 || int(at[len(at)-1]) >= len([]rune(path))) || len(path) > 4096 && ok {
			t.Fatalf("%q in %q: %v", query, path, at)
		}
	})
}
