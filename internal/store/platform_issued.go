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

func spend(tx *sqldb.Tx, hash string, expires time.Time) (fresh bool, err error) {
	return tx.ExecOne(`insert into spent_proofs (proof_hash, expires_at) values ($1, $2) on conflict do nothing`, hash, instant(expires))
}

// Spend implements session.Store.
func (s *LoginSessions) Spend(ctx context.Context, hash string, expires time.Time) (fresh bool, err error) {
	err = s.db.Update(ctx, "session.spend", func(tx *sqldb.Tx) error {
		fresh, err = spend(tx, hash, expires)
		return err
	})
	return fresh && err == nil, err
}

// EndIssued implements session.Store. A session of the provider's that is named with a
// subject ends that session alone.
func (s *LoginSessions) EndIssued(ctx context.Context, hash string, l login.Logout) (fresh bool, ended []string, err error) {
	err = s.db.Update(ctx, "session.end_issued", func(tx *sqldb.Tx) error {
		ended = nil
		if fresh, err = spend(tx, hash, l.Expires); err != nil || !fresh {
			return err
		}
		type owned struct {
			id   string
			user thole.UserID
		}
		over, err := sqldb.All(tx, func(rows *sql.Rows) (o owned, err error) { return o, rows.Scan(&o.id, &o.user) },
			`select id, user_id from web_sessions where issuer = $1 and ($2 = '' or idp_sid = $2)
			and ($3 = '' or user_id in (select user_id from user_identities where issuer = $1 and subject = $3)) order by id`, l.Issuer, plainText(l.SID), l.Subject)
		if err != nil {
			return err
		}
		for _, o := range over {
			tree, err := endTree(tx, `select id from web_sessions where id = $1`, o.id)
			if err != nil {
				return err
			}
			ended = append(ended, tree...)
			e := audit.Entry{Action: "login.end", Kind: "login", ID: o.id, Owner: o.user, Reason: "ended by " + l.Issuer, Before: audit.Facts(map[string][]string{"ended": tree})}
			if _, err := link(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	return fresh && err == nil, ended, err
}
