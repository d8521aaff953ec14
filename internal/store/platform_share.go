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

const selectShare = `select s.token_hash, s.id, s.thread_id, s.user_id, s.created_at, s.seen_at, s.expires_at
	from share_links s join users u on u.id = s.user_id where u.state = 'active'`

func scanShare(rows *sql.Rows) (v login.Share, err error) {
	var created, seen, expires int64
	err = rows.Scan(&v.Hash, &v.ID, &v.Thread, &v.User, &created, &seen, &expires)
	v.Created, v.Seen, v.Expires = thole.FromMillis(created), thole.FromMillis(seen), thole.FromMillis(expires)
	return v, err
}

// AddShare implements session.Store.
func (s *LoginSessions) AddShare(ctx context.Context, v login.Share, limit int) error {
	return s.db.Update(ctx, "session.add_share", func(tx *sqldb.Tx) error {
		// The user's row orders two callers that both see room for one more.
		if err := mustBeActive(tx, v.User); err != nil {
			return err
		}
		var n int64
		if err := tx.QueryRow(`select count(*) from share_links where user_id = $1`, v.User).Scan(&n); err != nil {
			return err
		}
		if n >= int64(limit) {
			return thole.Errorf(thole.CodeOverloaded, "there are %d share links already", n).WithHint("revoke one that is not used any more")
		}
		ok, err := tx.ExecOne(`insert into share_links (token_hash, id, thread_id, user_id, created_at, seen_at, expires_at)
			select $1, $2, t.id, $4, $5, 0, $6 from threads t where t.id = $3 and t.user_id = $4`,
			v.Hash, v.ID, v.Thread, v.User, instant(v.Created), instant(v.Expires))
		if err == nil && !ok {
			err = thole.Errorf(thole.CodeNotFound, "no thread %s", v.Thread)
		}
		if err != nil {
			return err
		}
		_, err = link(tx, audit.Entry{At: v.Created, Action: "share.create", Kind: "share", ID: v.ID, Owner: v.User, After: audit.Facts(map[string]any{"thread": v.Thread, "expires_at": v.Expires})})
		return err
	})
}

// Share implements session.Store.
func (s *LoginSessions) Share(ctx context.Context, hash string, now time.Time) (v login.Share, found bool, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err := sqldb.All(tx, scanShare, selectShare+` and s.token_hash = $1 and s.expires_at > $2`, hash, instant(now))
		if found = len(all) > 0; found {
			v = all[0]
		}
		return err
	})
	return v, found, err
}

// Shares implements session.Store.
func (s *LoginSessions) Shares(ctx context.Context, user thole.UserID, thread thole.ThreadID, now time.Time) (all []login.Share, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanShare, selectShare+` and s.user_id = $1 and ($2 = '' or s.thread_id = $2) and s.expires_at > $3 order by s.created_at, s.id`,
			user, string(thread), instant(now))
		return err
	})
	return all, err
}

// SeeShare implements session.Store.
func (s *LoginSessions) SeeShare(ctx context.Context, hash string, seen time.Time) error {
	return s.db.Update(ctx, "session.see_share", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`update share_links set seen_at = $2 where token_hash = $1 and seen_at < $2`, hash, instant(seen))
		return err
	})
}

// EndShare implements session.Store.
func (s *LoginSessions) EndShare(ctx context.Context, user thole.UserID, id string) (ended []string, err error) {
	err = s.db.Update(ctx, "session.end_share", func(tx *sqldb.Tx) error {
		ended = nil
		ok, err := tx.ExecOne(`delete from share_links where user_id = $1 and id = $2`, user, id)
		if err != nil || !ok {
			return err
		}
		ended = []string{id}
		tx.Notify(endedTopic, "")
		_, err = link(tx, audit.Entry{Action: "share.revoke", Kind: "share", ID: id, Owner: user})
		return err
	})
	return ended, err
}
