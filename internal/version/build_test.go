package version

import (
	"runtime/debug"
	"testing"
)

func TestBuild(t *testing.T) {
	vcs := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v0.4.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	for _, c := range []struct {
		got, want Build
	}{
		{build("1.2.3", "def", "2026-02-02T00:00:00Z", vcs), Build{Version: "1.2.3", Commit: "def", Date: "2026-02-02T00:00:00Z", Go: "go1.26"}},
		{build(unreleased, "", "", vcs), Build{Version: "v0.4.0", Commit: "abc", Date: "2026-01-02T03:04:05Z", Modified: true, Go: "go1.26"}},
		{build("1.2.3", "", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}), Build{Version: "1.2.3"}},
		{build(unreleased, "", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}), Build{Version: unreleased}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
}
