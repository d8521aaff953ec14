//go:build !thole_unguarded

// Package unguarded names the build that attack tests compare with: the same
// program without its checks of browsers, in which the attacks must succeed, or a
// test that sees them fail proves nothing. No setting switches to it; releases are
// built without the tag, and then the compiler removes the branches.
package unguarded

// Build is true only in the program that attack tests compare with.
const Build = false
