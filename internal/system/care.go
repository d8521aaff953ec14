package system

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/executor"
)

// Methods of the home's owner for executors.
const (
	// MethodCloseThread syncs and stops a thread's executor now, behind its running
	// turn; its removal is due a day later.
	MethodCloseThread = "thole/executor/close"
	// MethodSweep does at once what is overdue.
	MethodSweep = "thole/sweep"
	// MethodFiles says whether a thread's files are stored, and what that waits for.
	MethodFiles = "thole/workspace/status"
	// MethodExport writes the files a thread's last sync stored into a directory.
	MethodExport = "thole/workspace/export"
)

// ExportParams names a thread and an absolute directory.
type ExportParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Dir    string         `json:"dir"`
}

// ExportResult says what was written and what has no place in a plain layout.
type ExportResult struct {
	Dir      string    `json:"dir"`
	Snapshot string    `json:"snapshot_id"`
	Runtime  string    `json:"runtime_version"`
	Synced   time.Time `json:"synced_at"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Skipped  []string  `json:"skipped"`
}

// FilesParams names a thread.
type FilesParams struct {
	Thread thole.ThreadID `json:"thread_id"`
}

// FilesResult says how a thread's files are: Waits is what holds up its turn or its
// sync, in words, and Unstored the executors whose last sync failed.
type FilesResult struct {
	Waits    string          `json:"waits_for,omitempty"`
	Unstored []UnstoredFiles `json:"unstored"`
}

// UnstoredFiles is an executor whose last sync failed. It is tried again by itself.
type UnstoredFiles struct {
	Executor thole.ExecutorID `json:"executor_id"`
	Error    string           `json:"error"`
	LastSync time.Time        `json:"last_sync,omitzero"`
}

// CloseParams names a thread, or all that have a running executor. Interrupt ends a
// turn that is under way instead of waiting for it.
type CloseParams struct {
	Thread    thole.ThreadID `json:"thread_id,omitempty"`
	All       bool           `json:"all,omitempty"`
	Interrupt bool           `json:"interrupt,omitempty"`
}

// CloseResult names the threads whose executors stop.
type CloseResult struct {
	Threads []thole.ThreadID `json:"threads"`
}

func (t *threads) files(ctx context.Context, actor thole.Actor, id thole.ThreadID) (FilesResult, error) {
	out := FilesResult{Unstored: []UnstoredFiles{}}
	if _, err := t.machine.Get(ctx, actor, id); err != nil {
		return out, err
	}
	rows, err := t.rows.Of(ctx, id)
	for _, row := range rows {
		if row.SyncStatus == executor.SyncFailed {
			out.Unstored = append(out.Unstored, UnstoredFiles{Executor: row.ID, Error: row.SyncError, LastSync: row.LastSync})
		}
	}
	if away := t.workspaces.depot.away(); away != nil {
		out.Waits = away.Error()
	}
	return out, err
}

// careMethods are served on the home's socket.
func (t *threads) careMethods() map[string]daemon.Method {
	return map[string]daemon.Method{
		MethodCloseThread: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p CloseParams
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "close thread: %w", err)
			}
			return t.close(ctx, actor, p)
		},
		MethodSweep: func(ctx context.Context, _ thole.Actor, _ json.RawMessage) (any, error) {
			return struct{}{}, t.dispatcher.Sweep(ctx)
		},
		MethodFiles: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p FilesParams
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "files: %w", err)
			}
			return t.files(ctx, actor, p.Thread)
		},
		MethodExport: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p ExportParams
			if err := json.Unmarshal(params, &p); err != nil || !filepath.IsAbs(p.Dir) {
				return nil, thole.Errorf(thole.CodeInvalid, "export: a thread and an absolute directory are needed")
			}
			if _, err := t.machine.Get(ctx, actor, p.Thread); err != nil {
				return nil, err
			}
			s, x, err := t.workspaces.manager.ExportDir(ctx, p.Thread, p.Dir)
			if err != nil {
				return nil, err
			}
			return ExportResult{Dir: p.Dir, Snapshot: string(s.ID), Runtime: s.RuntimeVersion, Synced: s.Created, Files: x.Files, Bytes: x.Bytes, Skipped: append([]string{}, x.Skipped...)}, nil
		},
	}
}
