// Package desktop proves the Desktop channel with the built program. No real Desktop app was
// ever seen: what stands in for it is said where it is used.
package desktop
