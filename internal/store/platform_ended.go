package store

import (
	"context"
	"maps"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/sqldb"
)

const endedTopic = "logins"

// WatchEnded calls fn after a login, a token or a share link ended on any server of the
// store; where there is one server, it knows.
func (s *LoginSessions) WatchEnded(fn func()) (cancel func()) {
	return s.db.Subscribe(endedTopic, func(string) { fn() })
}

// EndRevived ends every login, token, share link and link of an account, unless that was done
// since: the store is an older one than it was, and nobody knows which of them were revoked.
func (s *LoginSessions) EndRevived(ctx context.Context, reason string, since time.Time) (ended int64, err error) {
	err = s.db.Update(ctx, "session.end_revived", func(tx *sqldb.Tx) error {
		ended = 0
		var done int
		if err := tx.QueryRow(`select count(*) from audit_events where action = 'login.end_all' and at >= $1`, instant(since)).Scan(&done); err != nil || done > 0 {
			return err
		}
		for _, table := range slices.Sorted(maps.Keys(Schema().Revocable)) {
			n, err := tx.Exec("delete from " + table)
			if err != nil {
				return err
			}
			ended += n
		}
		tx.Notify(endedTopic, "")
		_, err := link(tx, audit.Entry{Action: "login.end_all", Reason: reason, After: audit.Facts(map[string]int64{"ended": ended})}.From(audit.Source{Actor: thole.SystemActor}))
		return err
	})
	return ended, err
}

// Gone returns those of the ids that are of no login, token or share link any more.
func (s *LoginSessions) Gone(ctx context.Context, ids []string, now time.Time) (gone []string, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		gone, err = sqldb.All(tx, scanID[string], `select asked from unnest($1::text[]) asked
			where not exists (select 1 from web_sessions s join users u on u.id = s.user_id where s.id = asked and s.expires_at > $2 and u.state = 'active')
			and not exists (select 1 from api_tokens t join users u on u.id = t.user_id where t.id = asked and (t.expires_at = 0 or t.expires_at > $2) and u.state = 'active')
			and not exists (select 1 from share_links l where l.id = asked)`, ids, instant(now))
		return err
	})
	return gone, err
}
