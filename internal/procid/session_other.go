//go:build !linux

package procid

// SessionOf is not known here.
func SessionOf(int) int { return 0 }

// Session is not known here.
func Session(Identity) []Identity { return nil }
