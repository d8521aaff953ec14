package system

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/strictjson"
)

// Methods of the home's owner for executors.
const (
	// MethodCloseThread syncs and stops a thread's executor now, behind its running
	// turn; its removal is due a day later.
	MethodCloseThread = "thole/executor/close"
	// MethodSweep does at once what is overdue.
	MethodSweep = "thole/sweep"
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

// CloseParams names a thread.
type CloseParams struct {
	Thread thole.ThreadID `json:"thread_id"`
}

// careMethods are served on the home's socket.
func (t *threads) careMethods() map[string]daemon.Method {
	return map[string]daemon.Method{
		MethodCloseThread: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p CloseParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "close thread: %w", err)
			}
			if _, err := t.machine.Get(ctx, actor, p.Thread); err != nil {
				return nil, err
			}
			return struct{}{}, t.dispatcher.Close(ctx, p.Thread)
		},
		MethodSweep: func(ctx context.Context, _ thole.Actor, _ json.RawMessage) (any, error) {
			return struct{}{}, t.dispatcher.Sweep(ctx)
		},
		MethodExport: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p ExportParams
			if err := strictjson.Unmarshal(params, &p); err != nil || !filepath.IsAbs(p.Dir) {
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
