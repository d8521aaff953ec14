package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
)

// UsedSource is a place that threads' files come from, and when one of them last changed.
type UsedSource struct {
	Kind thole.SourceKind
	At   string
	Used time.Time
}

// Sources lists the repositories and directories of a user's threads, the last used first.
func (x *Index) Sources(ctx context.Context, user thole.UserID, limit int) (list []UsedSource, err error) {
	scan := func(rows *sql.Rows) (s UsedSource, err error) {
		var used int64
		err = rows.Scan(&s.Kind, &s.At, &used)
		s.Used = time.UnixMilli(used).UTC()
		return s, err
	}
	err = x.db.View(ctx, func(tx *sqldb.Tx) error {
		list, err = sqldb.All(tx, scan, `select source_kind, source_at, max(updated_at) from threads
			where source_at <> '' and user_id = $1 and not ephemeral and source_kind in ('branch', 'here')
			group by source_kind, source_at order by max(updated_at) desc, source_at limit $2 + 0`, user, int64(limit))
		return err
	})
	return list, err
}

// UploadNeeded reports whether a thread still has to be laid from an upload: one that has
// no snapshot of its own.
func (x *Index) UploadNeeded(ctx context.Context, user thole.UserID, upload string) (needed bool, err error) {
	err = x.db.View(ctx, func(tx *sqldb.Tx) error {
		found, err := sqldb.All(tx, scanThreadID, `select id from threads where source_kind = 'upload' and source_at = $1 and user_id = $2
			and not exists (select 1 from workspace_heads w where w.thread_id = threads.id) limit 1`, upload, user)
		needed = len(found) > 0
		return err
	})
	return needed, err
}
