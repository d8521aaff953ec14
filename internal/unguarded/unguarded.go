//go:build thole_unguarded

package unguarded

// Build is true only in the program that attack tests compare with.
const Build = true
