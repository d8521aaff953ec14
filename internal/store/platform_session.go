package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
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
		if err != nil {
			return err
		}
		_, err = link(tx, audit.Entry{Action: "login.link", Kind: "user", ID: string(user), Owner: user})
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
		got.With = "link"
		return logIn(tx, got)
	})
	return got, found, err
}

// logIn adds a session of an active user.
func logIn(tx *sqldb.Tx, v login.Session) error {
	if err := mustBeActive(tx, v.User.ID); err != nil {
		return err
	}
	if err := insertSession(tx, v); err != nil {
		return err
	}
	from := audit.Source{Actor: thole.Actor{User: v.User.ID, Via: "cookie", Client: v.Client}, Login: v.ID, Address: audit.SourceOf(tx.Context()).Address}
	_, err := link(tx, audit.Entry{At: v.Created, Action: "login.begin", Kind: "login", ID: v.ID, Owner: v.User.ID, After: audit.Facts(map[string]string{"with": v.With, "scope": string(v.Scope), "parent": v.Parent})}.From(from))
	return err
}

// mustBeActive holds a user's row, so that a transaction that disables the user finds what is added.
func mustBeActive(tx *sqldb.Tx, user thole.UserID) error {
	active, err := sqldb.All(tx, scanID[string], `select id from users where id = $1 and state = 'active'`+tx.ForUpdate(), user)
	if err == nil && len(active) == 0 {
		err = thole.Errorf(thole.CodeUnauthorized, "the user is not active")
	}
	return err
}

func scanUser(rows *sql.Rows) (u login.User, err error) {
	return u, rows.Scan(&u.ID, &u.Login, &u.Name)
}

func insertSession(tx *sqldb.Tx, v login.Session) error {
	if err := mustLive(tx, v.Parent, v.Created); err != nil {
		return err
	}
	_, err := tx.Exec(`insert into web_sessions (session_hash, proof_hash, id, user_id, scope, parent, client, created_at, seen_at, expires_at, ends_at, issuer, idp_sid)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`, v.Hash, v.Proof, v.ID, v.User.ID, v.Scope, v.Parent, v.Client,
		instant(v.Created), instant(v.Seen), instant(v.Expires), instant(v.Ends), v.Issuer, plainText(v.SID))
	return err
}

// UseCode implements session.Store.
func (s *LoginSessions) UseCode(ctx context.Context, hash string, user thole.UserID, now time.Time) (used bool, err error) {
	err = s.db.Update(ctx, "session.use_code", func(tx *sqldb.Tx) error {
		used, err = useCode(tx, hash, user, now)
		return err
	})
	return used, err
}

func useCode(tx *sqldb.Tx, hash string, user thole.UserID, now time.Time) (bool, error) {
	return tx.ExecOne(`delete from login_codes where code_hash = $1 and user_id = $2 and expires_at > $3`, hash, user, instant(now))
}

// AddSession implements session.Store.
func (s *LoginSessions) AddSession(ctx context.Context, v login.Session) error {
	return s.db.Update(ctx, "session.add", func(tx *sqldb.Tx) error { return logIn(tx, v) })
}

const selectSession = `select s.session_hash, s.proof_hash, s.id, s.scope, s.parent, s.client, s.created_at, s.seen_at, s.expires_at, s.ends_at, s.issuer, s.idp_sid, u.id, u.login, u.name
	from web_sessions s join users u on u.id = s.user_id where u.state = 'active'`

func scanSession(rows *sql.Rows) (v login.Session, err error) {
	var created, seen, expires, ends int64
	err = rows.Scan(&v.Hash, &v.Proof, &v.ID, &v.Scope, &v.Parent, &v.Client, &created, &seen, &expires, &ends, &v.Issuer, &v.SID, &v.User.ID, &v.User.Login, &v.User.Name)
	v.Created, v.Seen, v.Expires, v.Ends = thole.FromMillis(created), thole.FromMillis(seen), thole.FromMillis(expires), thole.FromMillis(ends)
	return v, err
}

// Session implements session.Store.
func (s *LoginSessions) Session(ctx context.Context, hash string, now time.Time) (login.Session, bool, error) {
	return viewLive(ctx, s.db, now, scanSession, func(v login.Session) string { return v.Parent }, selectSession+` and s.session_hash = $1`, hash)
}

// Sessions implements session.Store.
func (s *LoginSessions) Sessions(ctx context.Context, user thole.UserID) (all []login.Session, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanSession, selectSession+` and s.user_id = $1 order by s.created_at, s.id`, user)
		return err
	})
	return all, err
}

// RenewSession implements session.Store.
func (s *LoginSessions) RenewSession(ctx context.Context, hash string, seen, expires time.Time) error {
	return s.db.Update(ctx, "session.renew", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`update web_sessions set seen_at = $2, expires_at = $3 where session_hash = $1 and seen_at < $2`,
			hash, instant(seen), instant(expires))
		return err
	})
}

// EndSession implements session.Store.
func (s *LoginSessions) EndSession(ctx context.Context, user thole.UserID, id string) (ended []string, err error) {
	err = s.db.Update(ctx, "session.end", func(tx *sqldb.Tx) error {
		if ended, err = endTree(tx, `select id from web_sessions where user_id = $1 and id = $2`, user, id); err != nil || len(ended) == 0 {
			return err
		}
		_, err = link(tx, audit.Entry{Action: "login.end", Kind: "login", ID: id, Owner: user, Before: audit.Facts(map[string][]string{"ended": ended})})
		return err
	})
	return ended, err
}

// Sweep implements session.Store.
func (s *LoginSessions) Sweep(ctx context.Context, now time.Time) (ended []string, err error) {
	err = s.db.Update(ctx, "session.sweep", func(tx *sqldb.Tx) error {
		for _, table := range []string{"login_codes", "spent_proofs", "device_logins"} {
			if _, err := tx.Exec(`delete from `+table+` where expires_at <= $1`, instant(now)); err != nil {
				return err
			}
		}
		if ended, err = endTree(tx, `select id from web_sessions where expires_at <= $1
			union all select id from api_tokens where expires_at > 0 and expires_at <= $1`, instant(now)); err != nil {
			return err
		}
		shares, err := sqldb.All(tx, scanID[string], `select id from share_links where expires_at <= $1`, instant(now))
		if err != nil {
			return err
		}
		ended = append(ended, shares...)
		if _, err := tx.Exec(`delete from share_links where expires_at <= $1`, instant(now)); err != nil {
			return err
		}
		_, err = tx.Exec(`delete from idempotency_keys where created_at <= $1`, instant(now.Add(-idempotencyLife)))
		return err
	})
	return ended, err
}
