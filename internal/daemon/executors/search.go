package executors

import (
	"context"
	"errors"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/fuzzy"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/platform/view"
)

// Bounds of a search for files.
const (
	maxFound   = 50
	searchTime = 30 * time.Second
	// namesFresh is how long a listing answers the searches of a user who types.
	namesFresh = 5 * time.Second
	// maxListings bounds how many threads' listings are kept.
	maxListings = 8
)

// listings keeps the last listings of workspaces, and lets one caller at a time list one.
type listings struct {
	mu sync.Mutex // guards by
	by map[thole.ThreadID]*nameList
}

type nameList struct {
	mu    sync.Mutex // held while the workspace is listed
	at    time.Time
	names []executorclient.Name
}

func (l *listings) of(id thole.ThreadID) *nameList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[thole.ThreadID]*nameList{}
	}
	found := l.by[id]
	if found == nil {
		if len(l.by) >= maxListings {
			clear(l.by)
		}
		found = &nameList{}
		l.by[id] = found
	}
	return found
}

// SearchFiles finds files of a thread's workspace by a part of their path, best first. An
// executor that does not run is started.
func (t *Service) SearchFiles(ctx context.Context, actor thole.Actor, id thole.ThreadID, query string) ([]view.FoundFile, error) {
	th, err := t.cfg.Threads.Get(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if th.Archived {
		return nil, thole.Errorf(thole.CodeConflict, "thread %s is archived", id).WithHint("unarchive it first: thole thread unarchive %s", id)
	}
	root := thole.WorkspaceRoot
	if th.Files.InPlace() {
		root = th.Files.Dir
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	names, err := t.names(ctx, actor, id, root)
	if err != nil {
		return nil, err
	}
	return found(query, names), nil
}

func (t *Service) names(ctx context.Context, actor thole.Actor, id thole.ThreadID, root string) ([]executorclient.Name, error) {
	list := t.listings.of(id)
	list.mu.Lock()
	defer list.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if time.Since(list.at) < namesFresh {
		return list.names, nil
	}
	names, err := executorclient.Names(ctx, func(ctx context.Context, on executorclient.Notify) (*executorclient.Exec, func(), error) {
		return t.Exec(ctx, actor, authz.RunThread, id, true, on)
	}, root, root)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return nil, thole.Errorf(thole.CodeUnavailable, "list files: %s", refused.Message)
	}
	if err != nil {
		return nil, err
	}
	list.at, list.names = time.Now(), names
	return names, nil
}

// found are the best matches.
func found(query string, names []executorclient.Name) []view.FoundFile {
	out := []view.FoundFile{}
	for _, n := range fuzzy.Best(query, names, func(n executorclient.Name) string { return n.Path }, maxFound) {
		kind := "file"
		if n.Dir {
			kind = "directory"
		}
		out = append(out, view.FoundFile{Path: n.Path, Kind: kind})
	}
	return out
}
