package store

import (
	"context"
	"encoding/json"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/strictjson"
)

// Moved is the record of a move in the store that it made.
type Moved struct {
	From   string        `json:"from"` // machine and directory of the home
	Tables []sqldb.Table `json:"tables"`
}

// Move copies all rows of a SQLite store into an empty PostgreSQL store. Executors of the
// home that has the first belong to engine afterwards. A move that was committed and not
// heard of is found again, by what it copied.
func Move(ctx context.Context, from, to *DB, place, engine string) (*Moved, error) {
	moved := &Moved{From: place}
	err := to.View(ctx, func(tx *sqldb.Tx) error {
		var text string
		err := tx.QueryRow(`select value from store_facts where name = 'moved'`).Scan(&text)
		if sqldb.NoRows(err) {
			return nil
		}
		if err == nil {
			err = strictjson.Unmarshal([]byte(text), moved)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if moved.Tables != nil {
		return moved, moved.isOf(ctx, from, place)
	}
	moved.Tables, err = sqldb.CopyAll(ctx, from.DB, to.DB, func(tx *sqldb.Tx, copied []sqldb.Table) error {
		text, err := json.Marshal(Moved{From: place, Tables: copied})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`update executors set engine = $1 where engine = ''`, engine); err != nil {
			return err
		}
		_, err = tx.Exec(`insert into store_facts (name, value) values ('moved', $1)`, string(text))
		return err
	})
	return moved, err
}

// isOf refuses a move of another home, or of what the home held at another time.
func (m *Moved) isOf(ctx context.Context, from *DB, place string) error {
	now, err := sqldb.Sums(ctx, from.DB)
	if err == nil && (m.From != place || !slices.Equal(m.Tables, now)) {
		err = thole.Errorf(thole.CodeConflict, "the database is not empty: %s was moved there", m.From).WithHint("name an empty database in store.url: create database NAME")
	}
	return err
}
