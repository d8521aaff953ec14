package store

import (
	"context"
	"database/sql"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
)

// Sources lists where the files of all threads come from, each place once. Threads that
// began with nothing are left out.
func (s *Threads) Sources(ctx context.Context) (list []thole.Source, err error) {
	scan := func(rows *sql.Rows) (from thole.Source, err error) {
		var text string
		if err = rows.Scan(&text); err == nil {
			err = fromJSON(text, &from)
		}
		return from, err
	}
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list, err = sqldb.All(tx, scan, `select distinct files from threads where files <> '{}'`)
		return err
	})
	return list, err
}
