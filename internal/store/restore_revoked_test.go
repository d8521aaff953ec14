package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	login "github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
)

// TestRestoreRevivesNoRevokedToken: a token that was revoked after the backup stays so, one
// that was not goes on; over a damaged store, or without one, nobody knows and none works.
func TestRestoreRevivesNoRevokedToken(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	for name, c := range map[string]struct {
		before func(t *testing.T, path string)
		kept   bool
	}{
		"a store":         {func(*testing.T, string) {}, true},
		"a damaged store": {func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("rubbish"), 0o600)) }, false},
		"no store": {func(t *testing.T, path string) {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + suffix)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, backup := filepath.Join(dir, FileName), filepath.Join(dir, "backup.db")
			db, err := Open(ctx, sqldb.Config{Path: path})
			must(t, err)
			for _, id := range []string{"stays", "goes"} {
				must(t, db.LoginSessions().AddToken(ctx, login.Token{Hash: id, ID: id, Scope: login.ScopeAct, Name: id, User: login.User{ID: thole.LocalUser}, Created: now, Expires: now.Add(time.Hour)}, 10, ""))
			}
			_, err = Backup(ctx, path, backup)
			must(t, err)
			_, err = db.LoginSessions().EndToken(ctx, thole.LocalUser, "goes")
			must(t, err)
			must(t, db.Close())
			c.before(t, path)
			_, err = Restore(ctx, path, backup, now)
			must(t, err)
			again, err := Open(ctx, sqldb.Config{Path: path})
			must(t, err)
			defer again.Close()
			for id, want := range map[string]bool{"stays": c.kept, "goes": false} {
				if _, found, err := again.LoginSessions().Token(ctx, id, now); err != nil || found != want {
					t.Errorf("%s: found %v, %v", id, found, err)
				}
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
