// Package deliverytest makes the ports of deliveries fail on purpose. Its wrappers
// are generated; only tests use them.
package deliverytest

//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port .. -type Store -out store_fault.go
//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port ../../channel -type Channel -out channel_fault.go
