package crash

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
)

// Rows writes whole tables in one line, for Stage.State.
func Rows(db *store.DB, tables ...string) (string, error) {
	var out strings.Builder
	err := db.View(context.Background(), func(tx *sqldb.Tx) error {
		out.Reset()
		for _, table := range tables {
			rows, err := sqldb.All(tx, scanAny, "select * from "+table+" order by 1, 2")
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s %q ", table, rows)
		}
		return nil
	})
	return out.String(), err
}

func scanAny(rows *sql.Rows) (string, error) {
	names, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, dest := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		dest[i] = &values[i]
	}
	if err := rows.Scan(dest...); err != nil {
		return "", err
	}
	var out strings.Builder
	for i, v := range values {
		fmt.Fprintf(&out, "%s=%v ", names[i], v)
	}
	return out.String(), nil
}
