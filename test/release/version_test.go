package release

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The newest version of the changelog is the one that the documents and an unreleased
// build name, and upgrade.md knows the way to it from the one before.
func TestVersionsAgree(t *testing.T) {
	read := func(name string) string {
		body, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	versions := regexp.MustCompile(`(?m)^## v([0-9]+\.[0-9]+\.[0-9]+), \d{4}-\d{2}-\d{2}$`).FindAllStringSubmatch(read("CHANGELOG.md"), -1)
	if len(versions) < 2 {
		t.Fatalf("versions of the changelog: %v", versions)
	}
	newest, before := versions[0][1], versions[1][1]
	if !strings.Contains(read("internal/version/version.go"), `"`+newest+`-dev"`) {
		t.Errorf("internal/version does not build towards %s", newest)
	}
	if !strings.Contains(read("docs/operate/upgrade.md"), "## From v"+before+" to v"+newest) {
		t.Errorf("upgrade.md does not say how to come from v%s to v%s", before, newest)
	}
	for _, name := range []string{"docs/operate/release.md", "scripts/install.sh"} {
		named := regexp.MustCompile(`\b(?:v|Version=)(\d+\.\d+\.\d+)`).FindAllStringSubmatch(read(name), -1)
		if len(named) == 0 || slices.ContainsFunc(named, func(m []string) bool { return m[1] != newest }) {
			t.Errorf("%s names %v, not %s", name, named, newest)
		}
	}
}
