package store

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
)

// Tickets are proofs for one request each, which any server of the store takes.
type Tickets struct{ db *DB }

// Tickets gives the tickets of this store.
func (db *DB) Tickets() *Tickets { return &Tickets{db} }

// Add keeps a ticket by its sum until it expires. Those that expired go; beyond limit none
// is kept.
func (s *Tickets) Add(ctx context.Context, hash, sealed string, life time.Duration, limit int) error {
	return s.db.Update(ctx, "ticket.add", func(tx *sqldb.Tx) error {
		now := thole.Millis(tx.Now())
		if _, err := tx.Exec(`delete from tickets where expires_at <= $1`, now); err != nil {
			return err
		}
		ok, err := tx.ExecOne(`insert into tickets (ticket_hash, sealed, expires_at) select $1, $2, $3 where (select count(*) from tickets) < $4`,
			hash, sealed, now+life.Milliseconds(), limit)
		if err == nil && !ok {
			err = thole.Errorf(thole.CodeOverloaded, "%d tickets wait to be used", limit).WithHint("wait half a minute")
		}
		return err
	})
}

// Use removes a ticket: of two callers one gets it. "": there is none.
func (s *Tickets) Use(ctx context.Context, hash string) (sealed string, err error) {
	err = s.db.Update(ctx, "ticket.use", func(tx *sqldb.Tx) error {
		sealed = ""
		now := thole.Millis(tx.Now())
		var expires int64
		err := tx.QueryRow(`delete from tickets where ticket_hash = $1 returning sealed, expires_at`, hash).Scan(&sealed, &expires)
		if sqldb.NoRows(err) {
			return nil
		}
		if expires <= now {
			sealed = ""
		}
		return err
	})
	return sealed, err
}
