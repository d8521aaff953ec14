//go:build !linux

package peercred

// sameNamespace has nothing to distinguish here.
func sameNamespace(int) error { return nil }
