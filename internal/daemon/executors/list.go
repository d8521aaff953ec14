package executors

import (
	"cmp"
	"context"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executor"
)

// ListParams asks for one executor, by its id or its thread's; for all without.
type ListParams struct {
	ID string `json:"id,omitempty"`
}

// Executor is one as people see it.
type Executor struct {
	ID         thole.ExecutorID    `json:"id"`
	Thread     thole.ThreadID      `json:"thread_id"`
	Driver     string              `json:"driver"`
	State      executor.RowState   `json:"state"`
	Created    time.Time           `json:"created_at"`
	LastActive time.Time           `json:"last_active_at"`
	Sync       executor.SyncStatus `json:"sync"`
	SyncReason string              `json:"sync_reason,omitempty"`
	SyncError  string              `json:"sync_error,omitempty"`
	// SyncStarted is of the last try, LastSync of the last one that succeeded.
	SyncStarted time.Time `json:"sync_started_at,omitzero"`
	LastSync    time.Time `json:"last_sync_at,omitzero"`
	Snapshot    string    `json:"snapshot_id,omitempty"`
}

// list describes the executors that are not removed, of threads that the actor sees.
func (t *Service) list(ctx context.Context, actor thole.Actor, p ListParams) ([]Executor, error) {
	out := []Executor{}
	for after := thole.ExecutorID(""); ; {
		rows, err := t.cfg.Rows.Live(ctx, after, 500)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			after = r.ID
			if p.ID != "" && p.ID != string(r.ID) && p.ID != string(r.Thread) {
				continue
			}
			if _, err := t.cfg.Threads.Get(authz.Sifting(ctx), actor, r.Thread); err != nil {
				continue // another user's, or deleted
			}
			out = append(out, Executor{ID: r.ID, Thread: r.Thread, Driver: r.Driver, State: r.State, Created: r.Created, LastActive: r.LastActive, Sync: r.SyncStatus,
				SyncReason: r.SyncReason, SyncError: r.SyncError, SyncStarted: r.SyncStarted, LastSync: r.LastSync, Snapshot: r.Snapshot})
		}
		if len(rows) < 500 {
			break
		}
	}
	if p.ID != "" && len(out) == 0 {
		return nil, thole.Errorf(thole.CodeNotFound, "no executor has or serves %s", p.ID).WithHint("thole executor list shows them")
	}
	slices.SortFunc(out, func(a, b Executor) int { return cmp.Or(b.LastActive.Compare(a.LastActive), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// sync saves executors' files now, after the turns they have, and says how that went.
func (t *Service) sync(ctx context.Context, actor thole.Actor, p ListParams) (out []Executor, err error) {
	if p.ID == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "sync needs an executor or a thread").WithHint("thole executor list shows them")
	}
	before, err := t.list(ctx, actor, p)
	if err != nil {
		return nil, err
	}
	for _, x := range before {
		if err := t.cfg.Dispatcher.Sync(ctx, x.Thread); err != nil {
			return nil, err
		}
	}
	err = t.until(ctx, func() (bool, error) {
		if out, err = t.list(ctx, actor, p); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(out, func(x Executor) bool {
			was := slices.IndexFunc(before, func(b Executor) bool { return b.ID == x.ID })
			return was >= 0 && (x.Sync == executor.SyncRunning || !x.SyncStarted.After(before[was].SyncStarted))
		}), nil
	})
	return out, err
}
