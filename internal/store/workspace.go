package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/workspace"
)

// Workspaces is the durable record of workspace snapshots.
type Workspaces struct{ db *DB }

var _ workspace.Rows = (*Workspaces)(nil)

// Workspaces returns the workspace rows of this store.
func (db *DB) Workspaces() *Workspaces { return &Workspaces{db} }

const snapshotColumns = `id, thread_id, turn_id, executor_id, reason, tree, runtime_version, files, bytes, unsettled, created_at`

func scanSnapshot(rows *sql.Rows) (s workspace.Snapshot, err error) {
	var tree string
	var created int64
	err = rows.Scan(&s.ID, &s.Thread, &s.Turn, &s.Executor, &s.Reason, &tree, &s.RuntimeVersion, &s.Files, &s.Bytes, &s.Unsettled, &created)
	if err == nil {
		s.Created = thole.FromMillis(created)
		s.Tree, err = objects.ParseSum(tree)
	}
	return s, err
}

func scanRef(rows *sql.Rows) (r workspace.Ref, err error) {
	err = rows.Scan(&r.ID, &r.Key, &r.Size)
	return r, err
}

func getSnapshot(tx *sqldb.Tx, id workspace.SnapshotID) (workspace.Snapshot, []workspace.Ref, error) {
	found, err := sqldb.All(tx, scanSnapshot, `select `+snapshotColumns+` from workspace_snapshots where id = $1`, id)
	if err != nil {
		return workspace.Snapshot{}, nil, err
	}
	if len(found) == 0 {
		return workspace.Snapshot{}, nil, thole.Errorf(thole.CodeNotFound, "no snapshot %s", id)
	}
	refs, err := sqldb.All(tx, scanRef, `select object, object_key, size from workspace_refs where snapshot_id = $1`, id)
	return found[0], refs, err
}

func headOf(tx *sqldb.Tx, id thole.ThreadID) (snap workspace.SnapshotID, err error) {
	err = tx.QueryRow(`select snapshot_id from workspace_heads where thread_id = $1`, id).Scan(&snap)
	if sqldb.NoRows(err) {
		return "", nil
	}
	return snap, err
}

// Any reports whether anything was ever stored.
func (w *Workspaces) Any(ctx context.Context) (found bool, err error) {
	err = w.db.View(ctx, func(tx *sqldb.Tx) error {
		return tx.QueryRow(`select exists (select 1 from workspace_snapshots)`).Scan(&found)
	})
	return found, err
}

// Head implements workspace.Rows.
func (w *Workspaces) Head(ctx context.Context, id thole.ThreadID) (s workspace.Snapshot, refs []workspace.Ref, err error) {
	err = w.db.View(ctx, func(tx *sqldb.Tx) error {
		snap, err := headOf(tx, id)
		if err != nil {
			return err
		}
		if snap == "" {
			return thole.Errorf(thole.CodeNotFound, "thread %s was never synced", id)
		}
		s, refs, err = getSnapshot(tx, snap)
		return err
	})
	return s, refs, err
}

// Snapshot implements workspace.Rows.
func (w *Workspaces) Snapshot(ctx context.Context, id workspace.SnapshotID) (s workspace.Snapshot, refs []workspace.Ref, err error) {
	err = w.db.View(ctx, func(tx *sqldb.Tx) error {
		s, refs, err = getSnapshot(tx, id)
		return err
	})
	return s, refs, err
}

// Commit implements workspace.Rows.
func (w *Workspaces) Commit(ctx context.Context, c workspace.Commit) error {
	return w.db.Update(ctx, "workspace.commit", func(tx *sqldb.Tx) error {
		if err := fenceTurn(tx, c.Lease, c.Token); err != nil {
			return err
		}
		s, now := c.Snapshot, thole.Millis(tx.Now())
		if _, err := tx.Exec(`insert into workspace_snapshots (`+snapshotColumns+`, left_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0)`,
			s.ID, s.Thread, s.Turn, s.Executor, s.Reason, s.Tree.String(), s.RuntimeVersion, s.Files, s.Bytes, s.Unsettled, now); err != nil {
			return err
		}
		for _, r := range c.Refs {
			if _, err := tx.Exec(`insert into workspace_refs (snapshot_id, object, object_key, size) values ($1, $2, $3, $4)`, s.ID, r.ID, r.Key, r.Size); err != nil {
				return err
			}
		}
		if err := moveHead(tx, s.Thread, c.Base, s.ID, now); err != nil {
			return err
		}
		return linkSaved(tx, c.Base, s)
	})
}

// linkSaved records that the files of a thread became others. The program saves what its
// agents, commands and terminals left: whose each edit is the links before it say.
func linkSaved(tx *sqldb.Tx, base workspace.SnapshotID, s workspace.Snapshot) error {
	facts := func(id workspace.SnapshotID, tree string) string {
		return audit.Facts(map[string]string{"snapshot": string(id), "tree": tree})
	}
	e := audit.Entry{Action: "file.save", Kind: "thread", ID: string(s.Thread), Reason: s.Reason, After: facts(s.ID, s.Tree.String())}
	if base != "" {
		var tree string
		if err := tx.QueryRow(`select tree from workspace_snapshots where id = $1`, base).Scan(&tree); err != nil {
			return err
		}
		if tree == s.Tree.String() {
			return nil
		}
		e.Before = facts(base, tree)
	}
	err := tx.QueryRow(`select app_id, project_id, user_id from threads where id = $1`, s.Thread).Scan(&e.App, &e.Project, &e.Owner)
	if err != nil && !sqldb.NoRows(err) { // a thread that was deleted meanwhile is nobody's
		return err
	}
	e.OnBehalf = e.Owner
	_, err = link(tx, e.From(audit.Source{Actor: thole.SystemActor}))
	return err
}

// moveHead is the compare-and-set that makes a snapshot the thread's.
func moveHead(tx *sqldb.Tx, thread thole.ThreadID, from, to workspace.SnapshotID, now int64) error {
	var ok bool
	var err error
	if from == "" {
		ok, err = tx.ExecOne(`insert into workspace_heads (thread_id, snapshot_id, updated_at) values ($1, $2, $3) on conflict do nothing`, thread, to, now)
	} else {
		ok, err = tx.ExecOne(`update workspace_heads set snapshot_id = $3, updated_at = $4 where thread_id = $1 and snapshot_id = $2`, thread, from, to, now)
	}
	if err == nil && !ok {
		return thole.Errorf(thole.CodeConflict, "move snapshot of thread %s: %w", thread, workspace.ErrMoved)
	}
	if err == nil && from != "" {
		_, err = tx.Exec(`update workspace_snapshots set left_at = $2 where id = $1`, from, now)
	}
	return err
}

// Publish implements workspace.ManifestRows.
func (w *Workspaces) Publish(ctx context.Context, app thole.AppID, version, body string) (stored string, err error) {
	err = w.db.Update(ctx, "workspace.publish", func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`insert into workspace_manifests (app_id, runtime_version, body, created_at) values ($1, $2, $3, $4) on conflict do nothing`,
			app, version, body, thole.Millis(tx.Now())); err != nil {
			return err
		}
		stored, err = manifestOf(tx, app, version)
		return err
	})
	return stored, err
}

// Published implements workspace.ManifestRows.
func (w *Workspaces) Published(ctx context.Context, app thole.AppID, version string) (body string, err error) {
	err = w.db.View(ctx, func(tx *sqldb.Tx) error {
		body, err = manifestOf(tx, app, version)
		return err
	})
	return body, err
}

func manifestOf(tx *sqldb.Tx, app thole.AppID, version string) (body string, err error) {
	err = tx.QueryRow(`select body from workspace_manifests where app_id = $1 and runtime_version = $2`, app, version).Scan(&body)
	if sqldb.NoRows(err) {
		err = thole.Errorf(thole.CodeNotFound, "app %s has no runtime version %q", app, version)
	}
	return body, err
}

// Bind implements workspace.Rows.
func (w *Workspaces) Bind(ctx context.Context, id thole.ExecutorID, version string) (bound string, err error) {
	err = w.db.Update(ctx, "workspace.bind", func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`insert into workspace_runtimes (executor_id, runtime_version, created_at) values ($1, $2, $3) on conflict do nothing`,
			id, version, thole.Millis(tx.Now())); err != nil {
			return err
		}
		bound, err = runtimeOf(tx, id)
		return err
	})
	return bound, err
}

func runtimeOf(tx *sqldb.Tx, id thole.ExecutorID) (version string, err error) {
	err = tx.QueryRow(`select runtime_version from workspace_runtimes where executor_id = $1`, id).Scan(&version)
	if sqldb.NoRows(err) {
		err = nil
	}
	return version, err
}

// Runtime implements workspace.Rows.
func (w *Workspaces) Runtime(ctx context.Context, id thole.ExecutorID) (version string, err error) {
	err = w.db.View(ctx, func(tx *sqldb.Tx) error {
		version, err = runtimeOf(tx, id)
		return err
	})
	return version, err
}

// Now implements workspace.Rows.
func (w *Workspaces) Now(ctx context.Context) (now time.Time, err error) {
	err = w.db.View(ctx, func(tx *sqldb.Tx) error {
		now = tx.Now()
		return nil
	})
	return now, err
}
