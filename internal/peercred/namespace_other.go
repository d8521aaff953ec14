//go:build !linux

package peercred

// sameNamespace has nothing to tell apart here.
func sameNamespace(int) error { return nil }
