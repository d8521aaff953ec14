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

const selectToken = `select t.token_hash, t.id, t.name, t.scope, t.parent, t.created_at, t.seen_at, t.expires_at, u.id, u.login, u.name
	from api_tokens t join users u on u.id = t.user_id where u.state = 'active'`

func scanToken(rows *sql.Rows) (t login.Token, err error) {
	var created, seen, expires int64
	err = rows.Scan(&t.Hash, &t.ID, &t.Name, &t.Scope, &t.Parent, &created, &seen, &expires, &t.User.ID, &t.User.Login, &t.User.Name)
	t.Created, t.Seen, t.Expires = thole.FromMillis(created), thole.FromMillis(seen), thole.FromMillis(expires)
	return t, err
}

// AddToken implements session.Store.
func (s *LoginSessions) AddToken(ctx context.Context, t login.Token, limit int, code string) error {
	return s.db.Update(ctx, "session.add_token", func(tx *sqldb.Tx) error { return addToken(tx, t, limit, code) })
}

func addToken(tx *sqldb.Tx, t login.Token, limit int, code string) error {
	// The user's row orders two callers that both see room for one more.
	if err := mustBeActive(tx, t.User.ID); err != nil {
		return err
	}
	var n int64
	if err := tx.QueryRow(`select count(*) from api_tokens where user_id = $1`, t.User.ID).Scan(&n); err != nil {
		return err
	}
	if n >= int64(limit) {
		return thole.Errorf(thole.CodeOverloaded, "there are %d tokens already", n).WithHint("revoke one that is not used any more")
	}
	if err := mustLive(tx, t.Parent, t.Created); err != nil {
		return err
	}
	if code != "" {
		used, err := useCode(tx, code, t.User.ID, t.Created)
		if err != nil {
			return err
		}
		if !used {
			return login.ErrLinkUsed()
		}
	}
	_, err := tx.Exec(`insert into api_tokens (token_hash, id, user_id, name, scope, parent, created_at, seen_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, 0, $8)`, t.Hash, t.ID, t.User.ID, t.Name, t.Scope, t.Parent, instant(t.Created), instant(t.Expires))
	if err != nil {
		return err
	}
	_, err = link(tx, audit.Entry{At: t.Created, Action: "token.create", Kind: "token", ID: t.ID, Owner: t.User.ID,
		After: audit.Facts(map[string]any{"name": t.Name, "scope": t.Scope, "parent": t.Parent, "expires_at": t.Expires})})
	return err
}

// Token implements session.Store.
func (s *LoginSessions) Token(ctx context.Context, hash string, now time.Time) (login.Token, bool, error) {
	return viewLive(ctx, s.db, now, scanToken, func(t login.Token) string { return t.Parent }, selectToken+` and t.token_hash = $1`, hash)
}

// Tokens implements session.Store.
func (s *LoginSessions) Tokens(ctx context.Context, user thole.UserID) (all []login.Token, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanToken, selectToken+` and t.user_id = $1 order by t.created_at, t.id`, user)
		return err
	})
	return all, err
}

// SeeToken implements session.Store.
func (s *LoginSessions) SeeToken(ctx context.Context, hash string, seen time.Time) error {
	return s.db.Update(ctx, "session.see_token", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`update api_tokens set seen_at = $2 where token_hash = $1 and seen_at < $2`, hash, instant(seen))
		return err
	})
}

// EndToken implements session.Store.
func (s *LoginSessions) EndToken(ctx context.Context, user thole.UserID, id string) (ended []string, err error) {
	err = s.db.Update(ctx, "session.end_token", func(tx *sqldb.Tx) error {
		if ended, err = endTree(tx, `select id from api_tokens where user_id = $1 and id = $2`, user, id); err != nil || len(ended) == 0 {
			return err
		}
		_, err = link(tx, audit.Entry{Action: "token.revoke", Kind: "token", ID: id, Owner: user, Before: audit.Facts(map[string][]string{"ended": ended})})
		return err
	})
	return ended, err
}
