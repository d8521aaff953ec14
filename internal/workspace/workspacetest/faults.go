// Package workspacetest holds what tests of workspaces share: ports that fail on
// purpose.
package workspacetest

//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port ../../objects -type Store -out objects_fault.go
//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port .. -type Rows -out rows_fault.go
//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port .. -type Side -out side_fault.go
