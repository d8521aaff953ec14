// Package version holds the program's version, and the version of the Codex
// contract it is compatible with.
package version

// Version is set by the release build.
var Version = "0.1.0-dev"

// Codex is the Codex release whose app-server and exec-server wire we match.
const Codex = "0.166.0"
