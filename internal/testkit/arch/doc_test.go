package arch

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryPackageSaysWhatItOwns wants one doc comment in each package, in the
// form that go doc shows, and only one: two halves in two files contradict each
// other sooner or later.
func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	for _, p := range packages(t) {
		var documented []string
		for _, f := range p.files {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.dir, f), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			if parsed.Doc == nil || strings.HasPrefix(parsed.Doc.Text(), "Code generated") {
				continue
			}
			documented = append(documented, f)
			want := "Package " + parsed.Name.Name + " "
			if p.command {
				want = "Command " + path.Base(p.name) + " "
			}
			if !strings.HasPrefix(parsed.Doc.Text(), want) {
				t.Errorf("%s: the comment of %s should begin with %q", show(p.name), f, want)
			}
		}
		switch len(documented) {
		case 0:
			t.Errorf("%s has no package comment: say what it owns and what it refuses to do", show(p.name))
		case 1:
		default:
			t.Errorf("%s has package comments in %s: keep one", show(p.name), strings.Join(documented, ", "))
		}
	}
}
