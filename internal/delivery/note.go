package delivery

import (
	"context"

	thole "github.com/tholehq/thole"
)

// Note adds a row about a thread's host to the thread's ledger. Nothing moves.
func (m *Machine) Note(ctx context.Context, actor thole.Actor, owner thole.Owner, a Address, event string, proof map[string]string) error {
	return m.update(ctx, "note", actor, func(o *op) error {
		if err := o.ensureLane(owner, a); err != nil {
			return err
		}
		return o.log(event, Audit{Proof: proof})
	})
}
