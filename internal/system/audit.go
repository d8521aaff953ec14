package system

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/audit/anchor"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/unguarded"
)

// SetAuditHeadAside moves the signed head of a home's audit chain away, when an older store was
// put in the place of the one it is of; kept is where it is then, "" when there was none.
func SetAuditHeadAside(home string, now time.Time) (kept string, err error) {
	return anchor.Dir(filepath.Join(home, anchor.DirName)).SetAside(now)
}

// endRevived ends all logins where an older store is in the place of the one that the home knows,
// as after a restore of PostgreSQL by its own tools: what was revoked since then would be there again.
func endRevived(ctx context.Context, db *store.DB, trail *audit.Log, log *slog.Logger) error {
	signed, reason, err := trail.Older(ctx)
	if err != nil {
		log.Error("the signed head of the audit chain says nothing of the store", "err", err)
	}
	if reason == "" || unguarded.Build {
		return nil
	}
	ended, err := db.LoginSessions().EndRevived(ctx, reason, signed)
	if err == nil && ended > 0 {
		log.Warn("all logins, API tokens and share links were ended", "err", reason)
	}
	return err
}
