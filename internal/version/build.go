package version

import "runtime/debug"

// Commit and Date are of the source: set by the release build, else what go build
// recorded.
var Commit, Date string

// Build is what `thole version` prints.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

// Get describes this program.
func Get() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return build(Version, Commit, Date, info)
}

func build(version, commit, date string, info *debug.BuildInfo) Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: info.GoVersion}
	if version == unreleased && info.Main.Version != "" && info.Main.Version != "(devel)" { // go install …@VERSION
		b.Version = info.Main.Version
	}
	if commit != "" {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
