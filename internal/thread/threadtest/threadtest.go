// Package threadtest holds what tests of threads share: a store that fails on
// purpose, and one that believes its driver.
package threadtest

import (
	"context"

	"github.com/tholehq/thole/internal/thread"
)

//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port .. -type Store -out store_fault.go

// Unfenced is a store for tests of the machine alone, which report about turns
// themselves and have claimed none from the queue. The fence has tests of its own
// in the store.
type Unfenced struct{ thread.Store }

// Commit implements thread.Store.
func (u Unfenced) Commit(ctx context.Context, step string, c *thread.Commit) error {
	c.Fence = thread.TurnRef{}
	return u.Store.Commit(ctx, step, c)
}
