package store

import (
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

var (
	installationTable = sync.OnceValue(func() *table {
		return newTable("desktop_installation", installationColumns(new(delivery.Installation)))
	})
	bindingTable = sync.OnceValue(func() *table {
		return newTable("desktop_bindings", bindingColumns(new(delivery.Binding)), "lane_id", "user_id", "endpoint", "thread_id", "created_at")
	})
)

func installationColumns(in *delivery.Installation) []column {
	return []column{
		{"name", &in.Name}, {"read_transport", &in.Transport}, {"generation", &in.Generation}, {"read_capability", &in.Capabilities.Read},
		{"artifact_capability", &in.Capabilities.Artifact}, {"writeback_capability", &in.Capabilities.Writeback}, {"fingerprint", &in.Fingerprint},
		{"validated_at", millis{&in.ValidatedAt}}, {"updated_by", &in.UpdatedBy}, {"updated_at", millis{&in.UpdatedAt}}, {"version", &in.Version},
	}
}

func bindingColumns(b *delivery.Binding) []column {
	return []column{
		{"binding_id", &b.ID}, {"lane_id", &b.LaneID}, {"user_id", &b.User}, {"endpoint", &b.Endpoint}, {"thread_id", &b.Thread}, {"state", &b.State},
		{"degraded_for", &b.DegradedFor}, {"automation_id", &b.Automation}, {"bridge_thread_id", &b.Bridge}, {"read_transport", &b.Transport},
		{"transport_generation", &b.TransportGeneration}, {"read_capability", &b.Capabilities.Read}, {"artifact_capability", &b.Capabilities.Artifact},
		{"writeback_capability", &b.Capabilities.Writeback}, {"fingerprint", &b.Fingerprint}, {"armed_generation", &b.Armed},
		{"quiesced_at", millis{&b.QuiescedAt}}, {"pause_not_before", millis{&b.PauseNotBefore}}, {"pause_deadline", millis{&b.PauseDeadline}},
		{"created_at", millis{&b.CreatedAt}}, {"updated_at", millis{&b.UpdatedAt}}, {"verified_at", millis{&b.VerifiedAt}}, {"version", &b.Version},
	}
}

func (tx deliveryTx) Installation() (*delivery.Installation, error) { return tx.installation("") }

func (tx deliveryTx) LockInstallation() (*delivery.Installation, error) {
	return tx.installation(tx.ForUpdate())
}

func (tx deliveryTx) installation(lock string) (*delivery.Installation, error) {
	in, err := one(tx.Tx, installationColumns, installationTable().selected+"where name = 'desktop'"+lock)
	if err == nil && in == nil {
		err = thole.Errorf(thole.CodeInternal, "the store has no row of the Desktop installation")
	}
	return in, err
}

func (tx deliveryTx) UpdateInstallation(in *delivery.Installation) error {
	return put(tx.Tx, installationTable(), installationColumns(in), &in.Version)
}

func (tx deliveryTx) DegradeOtherBindings(in delivery.Installation, why string, now time.Time) error {
	_, err := tx.Exec(`update desktop_bindings set state = 'degraded', degraded_for = $1, updated_at = $2, version = version + 1
		where state = 'bound' and (read_transport <> $3 or transport_generation <> $4 or fingerprint <> $5)`,
		why, toMillis(now), string(in.Transport), in.Generation, in.Fingerprint)
	return err
}

func (tx deliveryTx) Binding(laneID string) (*delivery.Binding, error) {
	return one(tx.Tx, bindingColumns, bindingTable().selected+"where lane_id = $1", laneID)
}

func (tx deliveryTx) LockBinding(laneID string) (*delivery.Binding, error) {
	return one(tx.Tx, bindingColumns, bindingTable().selected+"where lane_id = $1"+tx.ForUpdate(), laneID)
}

func (tx deliveryTx) InsertBinding(b *delivery.Binding) error {
	if err := tx.otherBinding(b); err != nil {
		return err
	}
	_, err := tx.Exec(bindingTable().insert, arguments(bindingColumns(b))...)
	return err
}

func (tx deliveryTx) UpdateBinding(b *delivery.Binding) error {
	if err := tx.otherBinding(b); err != nil {
		return err
	}
	return put(tx.Tx, bindingTable(), bindingColumns(b), &b.Version)
}

// otherBinding says in words what the unique index refuses.
func (tx deliveryTx) otherBinding(b *delivery.Binding) error {
	other, err := one(tx.Tx, bindingColumns, bindingTable().selected+"where user_id = $1 and endpoint = $2 and automation_id = $3 and state <> 'unbound' and lane_id <> $4",
		string(b.User), b.Endpoint, b.Automation, b.LaneID)
	if err == nil && other != nil && b.State != thole.BindingUnbound {
		err = thole.Errorf(thole.CodeConflict, "automation %s wakes thread %s already", b.Automation, other.Thread).
			WithHint("thole desktop binding unbind --source-thread-id %s", other.Thread)
	}
	return err
}

func (tx deliveryTx) Bindings(user thole.UserID) ([]delivery.Binding, error) {
	return many(tx.Tx, bindingColumns, bindingTable().selected+"where user_id = $1 order by endpoint, thread_id", string(user))
}

func (tx deliveryTx) RestlessBindings(now, far time.Time) ([]delivery.Binding, error) {
	return many(tx.Tx, bindingColumns, bindingTable().selected+`where (state = 'bound' and armed_generation > 0 and quiesced_at = 0 and (pause_not_before <= $1 or pause_not_before > $2))
		or (state = 'degraded' and (exists (select 1 from delivery_lanes l where l.lane_id = desktop_bindings.lane_id and l.blocked <> '')
			or exists (select 1 from delivery_attempts a join delivery_batches b on b.batch_id = a.batch_id
				where a.lane_id = desktop_bindings.lane_id and b.target_kind = 'desktop' and a.`+openAttempt+`)))
		order by binding_id`, toMillis(now), toMillis(far))
}

func (tx deliveryTx) ArmingAttempts(now time.Time) ([]delivery.Attempt, error) {
	return many(tx.Tx, attemptColumns, attemptTable().selected+"where state = 'arm_pending' and arm_lease_until <= $1 order by arm_lease_until, attempt_id", toMillis(now))
}

func (tx deliveryTx) Scope(t thole.Target) (*delivery.Scope, error) {
	return one(tx.Tx, func(s *delivery.Scope) []column {
		return []column{{"", &s.Target}, {"", &s.Cursor}, {"", &s.LastTicket}, {"", &s.Revision}}
	}, `select target, ready_cursor, last_ticket, revision from delivery_scopes where target = $1`, string(t))
}
