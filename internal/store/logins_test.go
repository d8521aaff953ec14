package store

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	login "github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// TestTokensFromBefore: a token that was made before tokens had scopes and an end
// keeps working, for everything and for ever; a login from before, which has no
// second secret, does not.
func TestTokensFromBefore(t *testing.T) {
	for _, engine := range []string{sqldb.SQLite, sqldb.Postgres} {
		t.Run(engine, func(t *testing.T) {
			cfg := sqldb.Config{Path: filepath.Join(t.TempDir(), "home", FileName)}
			if engine == sqldb.Postgres {
				cfg = sqldb.Config{DSN: lab.Postgres(t)}
			}
			cfg.Schema.Files = upTo(t, "0149", "")
			ctx := context.Background()
			old, err := sqldb.Open(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := old.Update(ctx, "test.fill", func(tx *sqldb.Tx) error {
				if _, err := tx.Exec(`insert into api_tokens (token_hash, id, user_id, name, created_at, seen_at, expires_at) values ('t', 'id', $1, 'ci', 1, 0, 0)`, thole.LocalUser); err != nil {
					return err
				}
				_, err := tx.Exec(`insert into web_sessions (session_hash, user_id, client, created_at, seen_at, expires_at) values ('s', $1, '', 1, 1, 9000000000000)`, thole.LocalUser)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			db := reopen(t, cfg)
			got, found, err := db.LoginSessions().Token(ctx, "t", time.Now())
			if err != nil || !found || got.Scope != login.ScopeAdmin || !got.Expires.IsZero() || got.Describe().Warning == "" {
				t.Errorf("the token is %+v, found %v, %v", got, found, err)
			}
			if _, found, err := db.LoginSessions().Session(ctx, "s", time.Now()); err != nil || found {
				t.Errorf("a login without a second secret: found %v, %v", found, err)
			}
		})
	}
}
