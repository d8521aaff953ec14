// Package arch holds the tests that keep the shape of the program: which package
// may import which, and that every package says what it owns. The edges are data,
// each with its reason; ARCHITECTURE.md says the same in words. It has no code
// that other packages use.
package arch
