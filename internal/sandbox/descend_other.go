//go:build !linux

package sandbox

import "errors"

// Staged is Linux's alone.
func Staged(int) string { return "" }

// Descend is Linux's alone.
func Descend(int, int, []string, []string) error { return errors.New("boxes need Linux") }

// Lent is Linux's alone.
func Lent(path string) string { return path }

// CheckLend is Linux's alone.
func CheckLend(string) error { return errors.New("boxes need Linux") }
