// Package dispatchtest holds what tests of the dispatcher share: ports that fail
// on purpose.
package dispatchtest

//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port ../../queue -type Store -out queue_fault.go
//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port ../../executor -type Rows -out rows_fault.go
//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port ../../executor -type Driver -out driver_fault.go
