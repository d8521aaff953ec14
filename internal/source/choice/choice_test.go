package choice_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/choice"
)

var ctx = context.Background()

const thread thole.ThreadID = "01900000-0000-7000-8000-000000000001"

// takes resolves what it is asked for as it is.
type takes struct{ asked source.Request }

func (a *takes) Resolve(_ context.Context, _ thole.ThreadID, r source.Request) (thole.Source, error) {
	a.asked = r
	return thole.Source{Kind: r.Kind, Dir: r.Dir}, nil
}

func (a *takes) Inspect(context.Context, string) (view.Repository, error) {
	return view.Repository{}, nil
}

func (a *takes) Names(_ context.Context, path, ref string, dirty bool) ([]string, error) {
	if ref == "gone" || dirty {
		return nil, thole.Errorf(thole.CodeNotFound, "no such commit")
	}
	return []string{"deep/down/rowing.go", "row.go", "README.md"}, nil
}

// The files of a thread that has not begun are found in the repository or directory that it
// would work on, without keys and what is thole's own, and links are not followed.
func TestFilesBeforeAThreadBegins(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{"plain/rowing.txt": "", "plain/.git/rowing": "", "plain/.ssh/rowing": "", "home/rowing": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "home"), filepath.Join(top, "plain", "link")); err != nil {
		t.Fatal(err)
	}
	s := choice.New(choice.Config{Branch: &takes{}, Home: filepath.Join(top, "home"), KeyDir: func(name string) bool { return name == ".ssh" }})
	for _, c := range []struct {
		of    view.SourceChoice
		query string
		want  string
		code  thole.Code
	}{
		{view.SourceChoice{Kind: thole.SourceBranch, Repo: top}, "row", "row.go deep/down/rowing.go", ""},
		{view.SourceChoice{Kind: thole.SourceBranch, Repo: top}, "", "row.go README.md deep/down/rowing.go", ""},
		{view.SourceChoice{Kind: thole.SourceBranch, Repo: top, Ref: "gone"}, "", "", thole.CodeNotFound},
		{view.SourceChoice{Kind: thole.SourceBranch, Repo: filepath.Join(top, "home")}, "", "", thole.CodeForbidden},
		{view.SourceChoice{Kind: thole.SourceBranch, Repo: "https://example.org/x"}, "", "", thole.CodeInvalid},
		{view.SourceChoice{Kind: thole.SourceHere, Dir: filepath.Join(top, "plain")}, "row", "rowing.txt", ""},
		{view.SourceChoice{Kind: thole.SourceHere, Dir: filepath.Join(top, "plain", "link")}, "row", "", thole.CodeForbidden},
		{view.SourceChoice{Kind: thole.SourceUpload, Upload: "u"}, "row", "", thole.CodeInvalid},
	} {
		found, err := s.SearchFiles(ctx, c.of, c.query)
		var names []string
		for _, f := range found {
			names = append(names, f.Path)
		}
		if got := strings.Join(names, " "); got != c.want || thole.CodeOf(err) != c.code {
			t.Errorf("%+v %q: %q, %v, want %q", c.of, c.query, got, err, c.want)
		}
	}
}

func TestEveryKindIsHonouredOrRefusedByName(t *testing.T) {
	template := false
	repos, here := &takes{}, &takes{}
	s := choice.New(choice.Config{Branch: repos, Here: here, Template: func(context.Context) (bool, error) { return template, nil }})
	for _, tc := range []struct {
		r    source.Request
		code thole.Code
		want string
	}{
		{source.Request{Kind: "empty"}, "", ""},
		{source.Request{Kind: "Branch"}, thole.CodeInvalid, "unknown source kind"},
		{source.Request{Kind: "empty", Repo: "/x"}, thole.CodeInvalid, "source empty has no repo"},
		{source.Request{Kind: "template", Dir: "/x"}, thole.CodeInvalid, "source template has no dir"},
		{source.Request{Kind: "template"}, thole.CodeNotFound, "no template"},
		{source.Request{Kind: "here", Dir: "/x", Local: true}, "", ""},
		{source.Request{Kind: "here", Dir: "/x"}, thole.CodeForbidden, "on this machine"},
		{source.Request{Kind: "here", Local: true}, thole.CodeInvalid, "source here needs dir"},
		{source.Request{Kind: "here", Dir: "/x", Ref: "main", Local: true}, thole.CodeInvalid, "source here has no ref"},
		{source.Request{Kind: "here", Dir: "/x", Dirty: true, Local: true}, thole.CodeInvalid, "source here has no dirty"},
		{source.Request{Kind: "branch", Local: true}, thole.CodeInvalid, "source branch needs repo"},
		{source.Request{Kind: "branch", Repo: "/x", Upload: "y", Local: true}, thole.CodeInvalid, "source branch has no upload"},
		{source.Request{Kind: "branch", Repo: "/x", Name: "Fix it!", Local: true}, "", ""},
		{source.Request{Kind: "upload"}, thole.CodeInvalid, "source upload needs upload"},
		{source.Request{Kind: "upload", Upload: "x"}, thole.CodeUnsupported, "not offered"},
	} {
		got, err := s.Resolve(ctx, thread, tc.r)
		if thole.CodeOf(err) != tc.code || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.r, err, tc.want)
		}
		if err == nil && got.Kind != tc.r.Kind {
			t.Errorf("%+v became %+v", tc.r, got)
		}
	}
	if want := source.Slug("Fix it!", thread); repos.asked.Name != want {
		t.Errorf("the branch is named %q, want %q", repos.asked.Name, want)
	}
	if got, err := s.Resolve(ctx, thread, source.Request{Name: "x"}); err != nil || got.Kind != thole.SourceEmpty {
		t.Errorf("without a choice: %+v, %v", got, err)
	}
	s = choice.New(choice.Config{Branch: repos, Template: func(context.Context) (bool, error) { return template, nil }, Default: source.Request{Kind: "branch", Repo: "/sample", Local: true}})
	if got, err := s.Resolve(ctx, thread, source.Request{Name: "x", Actor: thole.LocalActor}); err != nil || got.Kind != thole.SourceBranch || repos.asked.Repo != "/sample" || repos.asked.Actor != thole.LocalActor || repos.asked.Name != source.Slug("x", thread) {
		t.Errorf("without a choice where there is a default: %+v, %v", repos.asked, err)
	}
	template = true
	if got, err := s.Resolve(ctx, thread, source.Request{Kind: "template"}); err != nil || got.Kind != thole.SourceTemplate {
		t.Errorf("with a template: %+v, %v", got, err)
	}
}

// What holds keys, or thole's own files, is not listed, and no link leads there.
func TestFoldersAreThoseOfPeople(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "home", ".thole")
	for _, dir := range []string{"home/.thole/x", "home/.ssh", "home/.config/gcloud", "home/code/repo/.git", "home/code/bare/objects", "home/code/bare/refs", "home/code/Plain"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"home/file", "home/code/bare/HEAD"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"home/keys": ".ssh", "home/own": home, "home/work": "code/repo", "home/nowhere": "gone", "home/afile": "file"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", filepath.Join(top, "home"))
	s := choice.New(choice.Config{Home: home, KeyDir: local.KeyDir})
	names := func(f view.Folders) string {
		var all []string
		for _, i := range f.Items {
			all = append(all, fmt.Sprintf("%s=%s:%v", i.Name, strings.TrimPrefix(i.Path, top), i.Repository))
		}
		return strings.Join(all, " ")
	}
	at, err := s.Folders(ctx, "")
	if want := "code=/home/code:false work=/home/code/repo:true"; err != nil || !strings.Contains(names(at), want) || strings.Contains(names(at), "ssh") || strings.Contains(names(at), "thole") {
		t.Errorf("home: %q, want %q: %v", names(at), want, err)
	}
	if at.Parent != top || at.Path != filepath.Join(top, "home") {
		t.Errorf("home is %+v", at)
	}
	code, err := s.Folders(ctx, filepath.Join(top, "home/code"))
	if want := "bare=/home/code/bare:true Plain=/home/code/Plain:false repo=/home/code/repo:true"; err != nil || names(code) != want {
		t.Errorf("code: %q, want %q: %v", names(code), want, err)
	}
	for path, want := range map[string]thole.Code{
		"relative": thole.CodeInvalid, filepath.Join(top, "home/file"): thole.CodeInvalid, filepath.Join(top, "home/none"): thole.CodeNotFound,
		filepath.Join(top, "home/.ssh"): thole.CodeForbidden, filepath.Join(top, "home/keys"): thole.CodeForbidden, home: thole.CodeForbidden,
		filepath.Join(home, "x"): thole.CodeForbidden, filepath.Join(top, "home/own/x"): thole.CodeForbidden, filepath.Join(top, "home/code/../.ssh"): thole.CodeForbidden,
		filepath.Join(top, "home/.config/gcloud"): thole.CodeForbidden, "/proc/self": thole.CodeForbidden,
	} {
		if _, err := s.Folders(ctx, path); thole.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
		if _, err := s.Inspect(ctx, path); thole.CodeOf(err) != want {
			t.Errorf("inspect %s: %v, want %s", path, err, want)
		}
	}
}
