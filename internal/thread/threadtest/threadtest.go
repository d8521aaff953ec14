// Package threadtest holds what tests of threads share: a store that fails on
// purpose.
package threadtest

//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port .. -type Store -out store_fault.go
