package here_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/here"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func TestResolve(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(lab.Git(t), args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	project, link := filepath.Join(top, "project"), filepath.Join(top, "link")
	git("init", "-q", filepath.Join(top, "lib"))
	git("clone", "-q", "--shared", filepath.Join(top, "lib"), project)
	if err := os.Symlink("project", link); err != nil {
		t.Fatal(err)
	}
	r := here.Resolver{Check: func(dir string) (repository.Place, error) { return local.CheckHere(dir, filepath.Join(top, "home")) }}
	want := thole.Source{Kind: thole.SourceHere, Dir: project, Objects: []string{filepath.Join(top, "lib", ".git", "objects")}}
	for _, dir := range []string{project, link} {
		got, err := r.Resolve(t.Context(), "thread", source.Request{Kind: thole.SourceHere, Dir: dir, Local: true})
		if err != nil || got.Kind != want.Kind || got.Dir != want.Dir || !slices.Equal(got.Objects, want.Objects) {
			t.Errorf("%s: %+v, %v", dir, got, err)
		}
	}
	for name, c := range map[string]struct {
		source.Request
		code thole.Code
	}{
		"from elsewhere": {source.Request{Dir: project}, thole.CodeForbidden},
		"no directory":   {source.Request{Local: true}, thole.CodeInvalid},
		"a ref":          {source.Request{Local: true, Dir: project, Ref: "main"}, thole.CodeInvalid},
		"not allowed":    {source.Request{Local: true, Dir: "/etc"}, thole.CodeForbidden},
		"not there":      {source.Request{Local: true, Dir: filepath.Join(top, "none")}, thole.CodeNotFound},
	} {
		if got, err := r.Resolve(t.Context(), "thread", c.Request); thole.CodeOf(err) != c.code || got.Kind != "" || name != "not there" && thole.HintOf(err) == "" {
			t.Errorf("%s: %+v, %v (%s)", name, got, err, thole.HintOf(err))
		}
	}
}
