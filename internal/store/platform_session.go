package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	login "github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
)

// LoginSessions are the rows of browsers that are logged in: session.Store.
type LoginSessions struct{ db *DB }

// LoginSessions gives the login side of the store.
func (db *DB) LoginSessions() *LoginSessions { return &LoginSessions{db} }

var _ login.Store = (*LoginSessions)(nil)

// AddLogin implements session.Store.
func (s *LoginSessions) AddLogin(ctx context.Context, hash string, user thole.UserID, expires time.Time) error {
	return s.db.Update(ctx, "session.add_login", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`insert into login_codes (code_hash, user_id, expires_at)
			select $1, id, $3 from users where id = $2 and state = 'active'`, hash, user, instant(expires))
		if err == nil && !ok {
			err = thole.Errorf(thole.CodeNotFound, "no user %s", user)
		}
		return err
	})
}

// Redeem implements session.Store.
func (s *LoginSessions) Redeem(ctx context.Context, loginHash string, want login.Session) (got login.Session, found bool, err error) {
	err = s.db.Update(ctx, "session.redeem", func(tx *sqldb.Tx) error {
		got, found = want, false
		users, err := sqldb.All(tx, scanUser, `select u.id, u.login, u.name from login_codes c join users u on u.id = c.user_id
			where c.code_hash = $1 and c.expires_at > $2 and u.state = 'active'`, loginHash, instant(want.Created))
		if err != nil || len(users) == 0 {
			return err
		}
		if found, err = tx.ExecOne(`delete from login_codes where code_hash = $1`, loginHash); err != nil || !found {
			return err
		}
		got.User = users[0]
		return insertSession(tx, got)
	})
	return got, found, err
}

func scanUser(rows *sql.Rows) (u login.User, err error) {
	return u, rows.Scan(&u.ID, &u.Login, &u.Name)
}

func insertSession(tx *sqldb.Tx, v login.Session) error {
	_, err := tx.Exec(`insert into web_sessions (session_hash, user_id, client, created_at, seen_at, expires_at)
		values ($1, $2, $3, $4, $5, $6)`, v.Hash, v.User.ID, v.Client, instant(v.Created), instant(v.Seen), instant(v.Expires))
	return err
}

// AddSession implements session.Store.
func (s *LoginSessions) AddSession(ctx context.Context, v login.Session) error {
	return s.db.Update(ctx, "session.add", func(tx *sqldb.Tx) error { return insertSession(tx, v) })
}

// Session implements session.Store.
func (s *LoginSessions) Session(ctx context.Context, hash string) (login.Session, bool, error) {
	return viewFound(ctx, s.db, func(rows *sql.Rows) (v login.Session, err error) {
		var created, seen, expires int64
		err = rows.Scan(&v.User.ID, &v.User.Login, &v.User.Name, &v.Client, &created, &seen, &expires)
		v.Hash, v.Created, v.Seen, v.Expires = hash, thole.FromMillis(created), thole.FromMillis(seen), thole.FromMillis(expires)
		return v, err
	}, `select u.id, u.login, u.name, s.client, s.created_at, s.seen_at, s.expires_at
		from web_sessions s join users u on u.id = s.user_id where s.session_hash = $1 and u.state = 'active'`, hash)
}

// viewFound reads the only row of a query.
func viewFound[T any](ctx context.Context, db *DB, scan func(*sql.Rows) (T, error), query string, args ...any) (v T, found bool, err error) {
	err = db.View(ctx, func(tx *sqldb.Tx) error {
		all, err := sqldb.All(tx, scan, query, args...)
		if err == nil && len(all) > 0 {
			v, found = all[0], true
		}
		return err
	})
	return v, found, err
}

// RenewSession implements session.Store.
func (s *LoginSessions) RenewSession(ctx context.Context, hash string, seen, expires time.Time) error {
	return s.db.Update(ctx, "session.renew", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`update web_sessions set seen_at = $2, expires_at = $3 where session_hash = $1 and seen_at < $2`,
			hash, instant(seen), instant(expires))
		return err
	})
}

// RemoveSession implements session.Store.
func (s *LoginSessions) RemoveSession(ctx context.Context, hash string) error {
	return s.db.Update(ctx, "session.remove", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`delete from web_sessions where session_hash = $1`, hash)
		return err
	})
}

// Sweep implements session.Store.
func (s *LoginSessions) Sweep(ctx context.Context, now time.Time) error {
	return s.db.Update(ctx, "session.sweep", func(tx *sqldb.Tx) error {
		for _, q := range []string{
			`delete from login_codes where expires_at <= $1`,
			`delete from web_sessions where expires_at <= $1`,
			`delete from api_tokens where expires_at > 0 and expires_at <= $1`,
		} {
			if _, err := tx.Exec(q, instant(now)); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`delete from idempotency_keys where created_at <= $1`, instant(now.Add(-idempotencyLife)))
		return err
	})
}
