package store

import (
	"context"
	"database/sql"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/sqldb"
)

// Defaults keep what a user's new threads start with.
type Defaults struct{ db *DB }

// Defaults gives the users' choices for new threads.
func (db *DB) Defaults() *Defaults { return &Defaults{db} }

// Load returns a user's choice, zero when there is none.
func (d *Defaults) Load(ctx context.Context, user thole.UserID) (event.Settings, error) {
	var all []event.Settings
	err := d.db.View(ctx, func(tx *sqldb.Tx) (err error) {
		all, err = sqldb.All(tx, func(rows *sql.Rows) (s event.Settings, err error) {
			return s, rows.Scan(&s.Provider, &s.Model, &s.Effort)
		}, `select provider, model, effort from thread_defaults where user_id = $1`, user)
		return err
	})
	if err != nil || len(all) == 0 {
		return event.Settings{}, err
	}
	return all[0], nil
}

// Save replaces a user's choice.
func (d *Defaults) Save(ctx context.Context, user thole.UserID, s event.Settings) error {
	return d.db.Update(ctx, "defaults.save", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into thread_defaults (user_id, provider, model, effort) values ($1, $2, $3, $4)
			on conflict (user_id) do update set provider = excluded.provider, model = excluded.model, effort = excluded.effort`,
			user, s.Provider, s.Model, s.Effort)
		return err
	})
}
