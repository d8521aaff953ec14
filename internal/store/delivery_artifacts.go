package store

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/sqldb"
)

// Artifacts keeps the records of result files.
type Artifacts struct{ db *DB }

var _ artifact.Store = (*Artifacts)(nil)

// Artifacts returns the artifact store.
func (db *DB) Artifacts() *Artifacts { return &Artifacts{db} }

// Now implements artifact.Store.
func (s *Artifacts) Now(ctx context.Context) (now time.Time, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error { now = tx.Now(); return nil })
	return now, err
}

// Artifact implements artifact.Store.
func (s *Artifacts) Artifact(ctx context.Context, id thole.ArtifactID) (r *artifact.Record, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		r, err = one(tx, artifactColumns, artifactTable().selected+"where artifact_id = $1", string(id))
		return err
	})
	return r, err
}

// pastRetention takes now, min and post-close milliseconds as $1, $2 and $3.
const pastRetention = `not held and removed_at = 0 and created_at + $2 <= $1 and pin_until <= $1 and (last_closed_at = 0 or last_closed_at + $3 <= $1)`

// Free implements artifact.Store.
func (s *Artifacts) Free(ctx context.Context, k artifact.Retention, now time.Time, limit int) (rs []artifact.Record, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		rs, err = many(tx, artifactColumns, artifactTable().selected+"where "+pastRetention+" and server_id = $5 order by created_at, artifact_id limit $4 + 0",
			toMillis(now), k.Min.Milliseconds(), k.PostClose.Milliseconds(), limit, s.db.server)
		return err
	})
	return rs, err
}

// RemoveIfFree implements artifact.Store: it checks the retention again in the
// statement that marks the row.
func (s *Artifacts) RemoveIfFree(ctx context.Context, id thole.ArtifactID, k artifact.Retention, now time.Time) (ok bool, err error) {
	err = s.db.Update(ctx, "artifact.remove", func(tx *sqldb.Tx) error {
		ok, err = tx.ExecOne("update artifacts set removed_at = $1, version = version + 1 where artifact_id = $4 and "+pastRetention,
			toMillis(now), k.Min.Milliseconds(), k.PostClose.Milliseconds(), string(id))
		if err != nil || !ok {
			return err
		}
		_, err = tx.Exec("delete from artifact_leases where artifact_id = $1", string(id))
		return err
	})
	return ok, err
}

// PinIfKept implements artifact.Store.
func (s *Artifacts) PinIfKept(ctx context.Context, id thole.ArtifactID, until time.Time) (r *artifact.Record, err error) {
	err = s.db.Update(ctx, "artifact.pin", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("update artifacts set pin_until = $2, version = version + 1 where artifact_id = $1 and removed_at = 0 and pin_until < $2", string(id), toMillis(until))
		if err != nil {
			return err
		}
		r, err = one(tx, artifactColumns, artifactTable().selected+"where artifact_id = $1 and removed_at = 0", string(id))
		return err
	})
	return r, err
}

// RevokeLeaseIfOwned implements artifact.Store.
func (s *Artifacts) RevokeLeaseIfOwned(ctx context.Context, id string, user thole.UserID) (ok bool, err error) {
	err = s.db.Update(ctx, "artifact.revoke_lease", func(tx *sqldb.Tx) error {
		ok, err = tx.ExecOne("update artifact_leases set revoked_at = case when revoked_at = 0 then $3 else revoked_at end where lease_id = $1 and user_id = $2",
			id, string(user), toMillis(tx.Now()))
		return err
	})
	return ok, err
}

func leaseColumns(l *artifact.Lease) []column {
	return []column{{"lease_id", &l.ID}, {"artifact_id", &l.Artifact}, {"user_id", &l.User}, {"deadline", millis{&l.Deadline}}, {"revoked_at", millis{&l.Revoked}}}
}

// InsertLease implements artifact.Store.
func (s *Artifacts) InsertLease(ctx context.Context, l artifact.Lease) error {
	return s.db.Update(ctx, "artifact.lease", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("insert into artifact_leases (lease_id, artifact_id, user_id, deadline, revoked_at) values ($1, $2, $3, $4, $5)", arguments(leaseColumns(&l))...)
		return err
	})
}

// Lease implements artifact.Store.
func (s *Artifacts) Lease(ctx context.Context, id string) (l *artifact.Lease, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		l, err = one(tx, leaseColumns, "select lease_id, artifact_id, user_id, deadline, revoked_at from artifact_leases where lease_id = $1", id)
		return err
	})
	return l, err
}

// DropLeases implements artifact.Store.
func (s *Artifacts) DropLeases(ctx context.Context, now time.Time) error {
	none := false
	if err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		n := 0
		err := tx.QueryRow("select count(*) from artifact_leases where deadline < $1", toMillis(now)).Scan(&n)
		none = n == 0
		return err
	}); err != nil || none {
		return err
	}
	return s.db.Update(ctx, "artifact.drop_leases", func(tx *sqldb.Tx) error {
		_, err := tx.Exec("delete from artifact_leases where deadline < $1", toMillis(now))
		return err
	})
}
