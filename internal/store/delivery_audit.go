package store

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/delivery"
)

// moves are the rows of the ledger that are links of the audit chain: what people and programs
// did to jobs and batches, and what became of each attempt to deliver. How a batch was made up
// and followed is the ledger's alone.
var moves = []string{
	"job.submit", "job.finish", "job.cancel", "batch.hold", "batch.release", "batch.close",
	"attempt." + string(delivery.MoveBeginAccept), "attempt." + string(delivery.MoveAccept), "attempt." + string(delivery.MoveReject),
	"attempt." + string(delivery.MoveAbandon), "attempt." + string(delivery.MoveSupersede), "attempt." + string(delivery.MoveArm),
}

// linkMoves links rows of one lane. It is the last thing that its transaction does.
func (tx deliveryTx) linkMoves(lane string, rows []delivery.Audit) error {
	var of *delivery.Lane
	for _, a := range rows {
		if !slices.Contains(moves, a.Event) {
			continue
		}
		if of == nil {
			var err error
			if of, err = tx.Lane(lane); err == nil && of == nil {
				err = thole.Errorf(thole.CodeInternal, "no lane %s", lane)
			}
			if err != nil {
				return err
			}
		}
		if _, err := link(tx.Tx, byActor(tx.Tx, a.Actor, moveEntry(a, of))); err != nil {
			return err
		}
	}
	return nil
}

func moveEntry(a delivery.Audit, of *delivery.Lane) audit.Entry {
	e := audit.Entry{At: a.At, Action: a.Event, App: of.Owner.App, Project: of.Owner.Project, Owner: of.User, Before: stateFact(a.From)}
	after := map[string]any{"thread": of.Thread}
	for name, v := range map[string]string{"state": a.To, "job": string(a.Job), "batch": string(a.Batch), "attempt": string(a.Attempt)} {
		if v != "" {
			after[name] = v
		}
	}
	if len(a.Proof) > 0 {
		after["proof"] = a.Proof
	}
	switch {
	case a.Attempt != "" && a.Batch == "":
		e.Kind, e.ID = "attempt", string(a.Attempt)
	case a.Batch != "":
		e.Kind, e.ID = "batch", string(a.Batch)
	default:
		e.Kind, e.ID = "job", string(a.Job)
	}
	if e.After = audit.Facts(after); !a.Actor.Person() {
		e.OnBehalf = of.User
	}
	return e
}
