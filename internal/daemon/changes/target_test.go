package changes

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
)

// Where changes go that nobody named a place for.
func TestTargets(t *testing.T) {
	local, remote := thole.Source{Kind: thole.SourceBranch, Repo: "/r"}, thole.Source{Kind: thole.SourceBranch, Repo: "https://example.com/r"}
	for _, c := range []struct {
		from                thole.Source
		named, files, whole string // where files and where branches go, "" for nowhere
	}{
		{local, "", "/r", "/r"},
		{local, "/n", "/n", "/n"},
		{remote, "", "/cwd", "/cwd"},
		{thole.Source{Kind: thole.SourceUpload}, "", "/cwd", ""},
		{thole.Source{Kind: thole.SourceUpload}, "/n", "/n", "/n"},
		{thole.Source{}, "", "/cwd", ""},
	} {
		th := fold.Thread{Files: c.from}
		if got, err := target(thole.LocalActor, th, c.named, "/cwd"); got != c.files || err != nil {
			t.Errorf("files of %+v: %q, %v", c.from, got, err)
		}
		if got, err := repository(thole.LocalActor, th, c.named, "/cwd"); got != c.whole || (err == nil) != (c.whole != "") {
			t.Errorf("branch of %+v: %q, %v", c.from, got, err)
		}
		for _, where := range []func(thole.Actor, fold.Thread, string, string) (string, error){target, repository} {
			if _, err := where(thole.Actor{User: "stranger"}, th, c.named, "/cwd"); thole.CodeOf(err) != thole.CodeForbidden {
				t.Errorf("a stranger: %v", err)
			}
		}
	}
}
