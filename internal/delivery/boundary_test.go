package delivery_test

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
)

// A handover is stored whole or not at all: each part of it alone, and the whole
// without any one part, is refused by the store itself.
func TestBoundaryIsWholeOrAbsent(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		r := newRig(t, open(t), testLimits())
		r.ready("a", thole.TargetDesktop)
		id := r.head("a").Batch.ID
		set := func(columns string) error {
			return r.db.Update(ctx, "test.boundary", func(tx *sqldb.Tx) error {
				_, err := tx.Exec("update delivery_batches set "+columns+" where batch_id = $1", string(id))
				return err
			})
		}
		parts := []string{
			"boundary_state = 'crossed_unacknowledged'", "boundary_crossed_at = 5", "boundary_attempt_id = 'a'", "boundary_generation = 1", "boundary_revision = 1",
			"boundary_envelope = '{}'", "boundary_envelope_bytes = 2", "boundary_retention_until = 9",
			"state = 'closed', closed_at = 5, close_reason = 'handoff_recorded'",
		}
		for _, part := range append([]string{"boundary_envelope_ref = 'r'", "boundary_pin_until = 1"}, parts...) {
			if set(part) == nil {
				t.Errorf("stored alone: %s", part)
			}
		}
		whole := func(without int, more string) string {
			all := more + "jobs = jobs"
			for i, p := range parts {
				if i != without {
					all += ", " + p
				}
			}
			return all
		}
		for i, p := range parts {
			if set(whole(i, "")) == nil {
				t.Errorf("stored without: %s", p)
			}
		}
		if set(whole(-1, "boundary_pin_until = 10, ")) == nil {
			t.Error("stored with a pin beyond its retention")
		}
		r.ok(set(whole(5, "boundary_envelope_ref = 'r', ")))
		r.ok(set("boundary_envelope_ref = '', boundary_envelope = 'text'"))
		b := r.batch(id).Batch
		if b.CloseReason != thole.CloseHandoffRecorded || b.Boundary.State != thole.BoundaryCrossed || b.Boundary.Envelope != "text" || b.Boundary.Generation != 1 {
			t.Errorf("read back: %+v", b.Boundary)
		}
	})
}
