package sqldb

import (
	"context"
	"database/sql"
	"slices"

	thole "github.com/tholehq/thole"
)

// forgetRevoked removes from a copy of a backup the proofs that the store which it replaces
// does not have any more: they were revoked, or expired, after the backup was made. Where
// that store is not there or cannot be read, nobody knows which were, and all of them go.
func (s Schema) forgetRevoked(ctx context.Context, path, replaced string) (ended int, err error) {
	for table, key := range s.Revocable {
		var live []string
		if replaced != "" {
			live, _ = Peek(ctx, replaced, table, "select "+key+" from "+table) // of a damaged store: none
		}
		err := withWriter(ctx, path, func(conn *sql.Conn) error {
			var tables int
			if err := conn.QueryRowContext(ctx, "select count(*) from sqlite_master where type = 'table' and name = $1", table).Scan(&tables); err != nil || tables == 0 {
				return err
			}
			have, err := firstColumn(ctx, conn, "select "+key+" from "+table)
			if err != nil {
				return err
			}
			for _, k := range have {
				if slices.Contains(live, k) {
					continue
				}
				if _, err := conn.ExecContext(ctx, "delete from "+table+" where "+key+" = $1", k); err != nil {
					return err
				}
				ended++
			}
			return nil
		})
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// EndProofs removes all proofs from the copy of a store at path that gets a home of its own:
// nobody knows there which were revoked after it was made.
func (s Schema) EndProofs(ctx context.Context, path string) (ended int, err error) {
	if ended, err = s.forgetRevoked(ctx, path, ""); err != nil {
		return 0, thole.Errorf(thole.CodeOf(classify(err)), "end the logins of %s: %w", path, classify(err))
	}
	return ended, nil
}
