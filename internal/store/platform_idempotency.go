package store

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
)

// idempotencyLife is how long a repeated request is recognised.
const idempotencyLife = 24 * time.Hour

// Idempotency remembers what requests with an Idempotency-Key made.
type Idempotency struct{ db *DB }

// Idempotency gives the memory of keys.
func (db *DB) Idempotency() *Idempotency { return &Idempotency{db} }

// Begin claims a key before the request acts. fresh=false: an earlier request
// has it, and result is what that one made, "" if it has not finished (or never
// will: then nobody knows whether it acted).
func (i *Idempotency) Begin(ctx context.Context, user thole.UserID, scope, key string) (result string, fresh bool, err error) {
	err = i.db.Update(ctx, "idempotency.begin", func(tx *sqldb.Tx) error {
		result = ""
		fresh, err = tx.ExecOne(`insert into idempotency_keys (user_id, scope, idem_key, result, created_at)
			values ($1, $2, $3, '', $4) on conflict do nothing`, user, scope, key, instant(tx.Now()))
		if err != nil || fresh {
			return err
		}
		return tx.QueryRow(`select result from idempotency_keys where user_id = $1 and scope = $2 and idem_key = $3`, user, scope, key).Scan(&result)
	})
	return result, fresh, err
}

// Finish records what the request made.
func (i *Idempotency) Finish(ctx context.Context, user thole.UserID, scope, key, result string) error {
	return i.db.Update(ctx, "idempotency.finish", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`update idempotency_keys set result = $4 where user_id = $1 and scope = $2 and idem_key = $3 and result = ''`, user, scope, key, result)
		return err
	})
}

// Forget frees a key whose request was refused without effect.
func (i *Idempotency) Forget(ctx context.Context, user thole.UserID, scope, key string) error {
	return i.db.Update(ctx, "idempotency.forget", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`delete from idempotency_keys where user_id = $1 and scope = $2 and idem_key = $3 and result = ''`, user, scope, key)
		return err
	})
}
