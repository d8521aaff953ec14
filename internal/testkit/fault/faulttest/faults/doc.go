// Package faults holds the generated wrapper that the generator's tests use.
package faults

//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port .. -type Ledger -out ledger_fault.go
