package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// unmarked is what a heading's name in a link has not.
	unmarked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names by which links reach the headings of a document.
func anchors(body string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(body, -1) {
		out[strings.ReplaceAll(unmarked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}

// Links of documents to files of the tree, and to headings in them, lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	found := 0
	reference, err := filepath.Glob(filepath.Join(root, "docs/reference/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(documents(t), reference, []string{filepath.Join(root, "CHANGELOG.md")}) {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(body), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			to, err := os.ReadFile(target)
			if info, bad := os.Stat(target); bad == nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if anchor != "" && !anchors(string(to))[anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d links", found)
	}
}
