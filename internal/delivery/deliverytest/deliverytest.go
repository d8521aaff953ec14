// Package deliverytest is what tests of deliveries share: a running machine and
// driver, and ports that fail on purpose, whose wrappers are generated.
package deliverytest

//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port .. -type Store -out store_fault.go
//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port ../../channel -type Channel -out channel_fault.go
