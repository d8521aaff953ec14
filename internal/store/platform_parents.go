package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
)

// maxParents bounds how many logins and tokens were made with one another.
const maxParents = 16

// live reports whether a parent and all of its own parents are there and unexpired.
func live(tx *sqldb.Tx, parent string, now time.Time) (bool, error) {
	for range maxParents {
		if parent == "" {
			return true, nil
		}
		above, err := sqldb.All(tx, scanID[string], `select parent from web_sessions where id = $1 and expires_at > $2
			union all select parent from api_tokens where id = $1 and (expires_at = 0 or expires_at > $2)`, parent, instant(now))
		if err != nil || len(above) == 0 {
			return false, err
		}
		parent = above[0]
	}
	return false, nil
}

func mustLive(tx *sqldb.Tx, parent string, now time.Time) error {
	ok, err := live(tx, parent, now)
	if err == nil && !ok {
		err = thole.Errorf(thole.CodeUnauthorized, "the login or token that this was to be made with has ended")
	}
	return err
}

// viewLive reads the only row of a query, if all of its parents are live.
func viewLive[T any](ctx context.Context, db *DB, now time.Time, scan func(*sql.Rows) (T, error), parent func(T) string, query string, args ...any) (v T, found bool, err error) {
	err = db.View(ctx, func(tx *sqldb.Tx) error {
		all, err := sqldb.All(tx, scan, query, args...)
		if err != nil || len(all) == 0 {
			return err
		}
		v = all[0]
		found, err = live(tx, parent(v), now)
		return err
	})
	return v, found, err
}

// endTree removes the logins and tokens that a query names, and what was made with
// them; it returns the ids of all.
func endTree(tx *sqldb.Tx, query string, args ...any) (ended []string, err error) {
	if ended, err = sqldb.All(tx, scanID[string], query, args...); err != nil {
		return nil, err
	}
	if len(ended) > 0 {
		tx.Notify(endedTopic, "")
	}
	for i := 0; i < len(ended); i++ { // it grows
		made, err := sqldb.All(tx, scanID[string], `select id from web_sessions where parent = $1 union all select id from api_tokens where parent = $1`, ended[i])
		if err != nil {
			return nil, err
		}
		ended = append(ended, made...)
		for _, table := range []string{"web_sessions", "api_tokens"} {
			if _, err := tx.Exec(`delete from `+table+` where id = $1`, ended[i]); err != nil {
				return nil, err
			}
		}
	}
	return ended, nil
}
