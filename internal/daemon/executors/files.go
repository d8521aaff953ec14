package executors

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/platform/view"
)

// saveTime is how long Save waits.
const saveTime = 20 * time.Second

// FilesOf says how far a thread's files are saved: what its executors' last try came
// to, whether or not a turn began it.
func (t *Service) FilesOf(ctx context.Context, actor thole.Actor, id thole.ThreadID) (view.Files, error) {
	now, err := t.savedNow(ctx, actor, id)
	if err != nil {
		return view.Files{}, err
	}
	rows, err := t.cfg.Rows.Of(ctx, id)
	if err != nil {
		return view.Files{}, err
	}
	var last executor.Row
	out := view.Files{State: "none", Error: now.Unsaved, WaitsFor: now.Waits}
	for _, row := range rows {
		if last.ID == "" || row.SyncStarted.After(last.SyncStarted) {
			last = row
		}
		if row.LastSync.After(out.SavedAt) {
			out.SavedAt = row.LastSync
		}
	}
	out.ExecutorID, out.TriedAt, out.Reason = string(last.ID), last.SyncStarted, last.SyncReason
	if last.SyncStatus == executor.SyncFailed {
		out.Error = last.SyncError
	}
	switch {
	case now.Saving, last.SyncStatus == executor.SyncRunning:
		out.State, out.Error = "saving", ""
	case out.Error != "":
		out.State = "unsaved"
	case last.SyncStatus == executor.SyncSuccess:
		out.State = "saved"
	}
	return out, nil
}

// Save saves a thread's files now, after the turn that runs, and waits for it, but
// not for long.
func (t *Service) Save(ctx context.Context, actor thole.Actor, id thole.ThreadID) (view.Files, error) {
	within, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	if _, err := t.sync(within, actor, ListParams{ID: string(id)}); err != nil && (within.Err() == nil || ctx.Err() != nil) {
		return view.Files{}, err
	}
	return t.FilesOf(ctx, actor, id)
}
