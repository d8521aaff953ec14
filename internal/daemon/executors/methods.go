package executors

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
	// MethodCloseThread asks for a thread's executor to be synced and stopped, after
	// its running turn; its removal is due a day later. MethodStopped waits for it.
	MethodCloseThread = "thole/executor/close"
	MethodStopped     = "thole/executor/stopped"
	// MethodList describes executors; MethodSync saves their files first.
	MethodList = "thole/executor/list"
	MethodSync = "thole/executor/sync"
	// MethodPaths says what of the owner's shell agents have, and what not and why.
	MethodPaths = "thole/executor/paths"
	// MethodSweep does at once what is overdue.
	MethodSweep = "thole/sweep"
	// MethodExport writes the files a thread's last sync stored into a directory.
	MethodExport = "thole/workspace/export"
	// MethodCalls lists the recorded model calls of a turn.
	MethodCalls = "thole/thread/calls"
	// MethodSaved says how far a thread's files are saved, and may wait until they are.
	MethodSaved = "thole/workspace/saved"
	// MethodTurns describes a thread's newest turns: usage, and what their time was spent on.
	MethodTurns = "thole/thread/turns"
)

// ExportParams names a thread and an absolute directory.
type ExportParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Dir    string         `json:"dir"`
	Raw    bool           `json:"raw,omitempty"` // with what runs programs of the agent's
}

// ExportResult says what was written and what has no place in a directory.
type ExportResult struct {
	Dir      string    `json:"dir"`
	Snapshot string    `json:"snapshot_id"`
	Runtime  string    `json:"runtime_version"`
	Synced   time.Time `json:"synced_at"`
	Files    int       `json:"files"`
	Links    int       `json:"links"`
	Bytes    int64     `json:"bytes"`
	Skipped  []string  `json:"skipped"`
	Stripped []string  `json:"stripped"`
}

// CloseParams names a thread, or all that have a running executor. Interrupt ends a
// turn that is under way instead of waiting for it.
type CloseParams struct {
	Thread    thole.ThreadID `json:"thread_id,omitempty"`
	All       bool           `json:"all,omitempty"`
	Interrupt bool           `json:"interrupt,omitempty"`
}

// CloseResult names the threads whose executors stop, and when they were asked to, by
// the store's clock.
type CloseResult struct {
	Threads []thole.ThreadID `json:"threads"`
	Asked   time.Time        `json:"asked_at"`
}

// Methods are served on the home's socket.
func (t *Service) Methods() map[string]daemon.Method {
	return map[string]daemon.Method{
		MethodCloseThread: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p CloseParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "close thread: %w", err)
			}
			return t.close(ctx, actor, p)
		},
		MethodNetwork: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p NetworkParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "thread network: %w", err)
			}
			return t.network(ctx, actor, p)
		},
		MethodCalls: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p CallsParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "recorded calls: %w", err)
			}
			return t.calls(ctx, actor, p)
		},
		MethodStopped: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p StoppedParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "wait for stop: %w", err)
			}
			return struct{}{}, t.stopped(ctx, actor, p)
		},
		MethodSaved: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p SavedParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "saved files: %w", err)
			}
			return t.saved(ctx, actor, p)
		},
		MethodTurns: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p TurnsParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "list turns: %w", err)
			}
			return t.turns(ctx, actor, p)
		},
		MethodList: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p ListParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "list executors: %w", err)
			}
			return t.list(ctx, actor, p)
		},
		MethodSync: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p ListParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "sync executor: %w", err)
			}
			return t.sync(ctx, actor, p)
		},
		MethodPaths: func(context.Context, thole.Actor, json.RawMessage) (any, error) { return t.cfg.Shell(), nil },
		MethodSweep: func(ctx context.Context, _ thole.Actor, _ json.RawMessage) (any, error) {
			return struct{}{}, t.cfg.Dispatcher.Sweep(ctx)
		},
		MethodExport: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p ExportParams
			if err := strictjson.Unmarshal(params, &p); err != nil || !filepath.IsAbs(p.Dir) {
				return nil, thole.Errorf(thole.CodeInvalid, "export: a thread and an absolute directory are needed")
			}
			th, err := t.cfg.Threads.Get(ctx, actor, p.Thread)
			if err != nil {
				return nil, err
			}
			if th.Files.InPlace() {
				return nil, thole.Errorf(thole.CodeInvalid, "export: thread %s works in %s itself, and nothing of that is saved", p.Thread, th.Files.Dir).WithHint("copy the directory")
			}
			s, x, err := t.cfg.Files.ExportDir(ctx, p.Thread, p.Dir, p.Raw)
			if err != nil {
				return nil, err
			}
			return ExportResult{Dir: p.Dir, Snapshot: string(s.ID), Runtime: s.RuntimeVersion, Synced: s.Created, Files: x.Files, Links: x.Links, Bytes: x.Bytes, Skipped: append([]string{}, x.Skipped...), Stripped: append([]string{}, x.Stripped...)}, nil
		},
	}
}
