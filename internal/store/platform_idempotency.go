package store

import (
	"context"
	"errors"
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

// ErrKeyReused: the key was used for another request.
var ErrKeyReused = errors.New("the Idempotency-Key was used for another request")

// claimLife is how long a claim of another process of a shared store is respected.
const claimLife = time.Minute

// Begin claims a key before the request acts; request is a sum of what it asks for,
// and any other under the same key is ErrKeyReused. fresh=false: an earlier request
// has the key, and result is what that one made, "" while it runs. The claim of a
// process that ended is taken over: the request that repeats it must find what the
// first one made.
func (i *Idempotency) Begin(ctx context.Context, user thole.UserID, scope, key, request string) (result string, fresh bool, err error) {
	err = i.db.Update(ctx, "idempotency.begin", func(tx *sqldb.Tx) error {
		result = ""
		now := instant(tx.Now())
		fresh, err = tx.ExecOne(`insert into idempotency_keys (user_id, scope, idem_key, result, created_at, request, holder)
			values ($1, $2, $3, '', $4, $5, $6) on conflict do nothing`, user, scope, key, now, request, i.db.holder)
		if err != nil || fresh {
			return err
		}
		var first, holder string
		var at int64
		err = tx.QueryRow(`select result, request, holder, created_at from idempotency_keys where user_id = $1 and scope = $2 and idem_key = $3`, user, scope, key).
			Scan(&result, &first, &holder, &at)
		if err != nil {
			return err
		}
		if first != "" && first != request {
			return ErrKeyReused
		}
		if result != "" || holder == i.db.holder || i.db.Engine() == sqldb.Postgres && now-at < claimLife.Milliseconds() {
			return nil
		}
		fresh, err = tx.ExecOne(`update idempotency_keys set holder = $4, created_at = $5
			where user_id = $1 and scope = $2 and idem_key = $3 and result = '' and holder = $6`, user, scope, key, i.db.holder, now, holder)
		return err
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
