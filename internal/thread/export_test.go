package thread

import "context"

// Checkpoint stores text in flight now.
func (m *Machine) Checkpoint(ctx context.Context) { m.checkpoint(ctx) }
