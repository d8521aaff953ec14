package store

import (
	"context"
	"time"

	"github.com/tholehq/thole/internal/sqldb"
)

const endedTopic = "logins"

// WatchEnded calls fn after a login, a token or a share link ended on any server of the
// store; where there is one server, it knows.
func (s *LoginSessions) WatchEnded(fn func()) (cancel func()) {
	return s.db.Subscribe(endedTopic, func(string) { fn() })
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
