// Package version holds the program's version, and the version of the Codex
// contract it is compatible with.
package version

// Version is set by the release build.
var Version = unreleased

const unreleased = "0.2.0-dev"

// Codex is the Codex release whose app-server and exec-server wire we match.
const Codex = "0.166.0"

// OldestTUI is the oldest Codex TUI that attaches: the first whose --remote takes a
// unix socket.
const OldestTUI = "0.131.0"
