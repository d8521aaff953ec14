package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/protocol/exec"
)

// Executors reaches what runs next to threads' agents.
type Executors interface {
	// Exec opens a session with the exec-server in a thread's executor. With start one that
	// does not run is started. on gets the session's notifications in order and may wait.
	// done ends the session. The thread must let the actor do that.
	Exec(ctx context.Context, actor thole.Actor, action authz.Action, id thole.ThreadID, start bool, on func(method string, params json.RawMessage)) (x *executorclient.Exec, done func(), err error)
	// Background asks what a thread's agent left running, and may end it. Nothing is
	// started for it.
	Background(ctx context.Context, actor thole.Actor, action authz.Action, req wire.BackgroundRequest) (wire.Background, error)
}

func (s *Server) registerWorkspace() {
	s.registerCommands()
	s.registerFiles()
	s.registerWatches()
	s.registerSearch()
	s.registerTerminals()
	for _, name := range []string{"command/exec", "fs/readFile", "fs/writeFile", "fs/createDirectory", "fs/getMetadata", "fs/readDirectory", "fs/remove", "fs/copy", "fs/watch", "fuzzyFileSearch", "fuzzyFileSearch/sessionStart"} {
		s.methods[name].gated = map[string]bool{"threadId": true}
	}
}

// place is a path in the workspace of a thread.
type place struct {
	thread thole.ThreadID
	owner  thole.Owner
	root   string // of the workspace, as its agent sees it
	path   string
}

// fileTime bounds one call about files.
const fileTime = 2 * time.Minute

// where finds the thread in whose workspace a path is: the one that the client names, or
// one that the connection has open, or one that the actor may see. Workspaces of their own
// all have the same path, so a path may be in several: for what changes nothing the thread
// that the connection used last is meant, and the rest is refused.
func (s *Server) where(ctx context.Context, c *conn, path string, in app.InThread, changes bool) (place, error) {
	if !filepath.IsAbs(path) {
		return place{}, invalid("AbsolutePathBuf deserialized without a base path")
	}
	path = filepath.Clean(path)
	if s.cfg.Executors == nil {
		return place{}, thole.Errorf(thole.CodeUnsupported, "this server has no executors")
	}
	if in.ThreadID != nil {
		id, err := threadID(*in.ThreadID)
		if err != nil {
			return place{}, err
		}
		t, err := s.usable(ctx, c, id)
		if err != nil {
			return place{}, err
		}
		if root := rootOf(t); within(path, root) {
			return place{id, t.Owner, root, path}, nil
		}
		return place{}, thole.Errorf(thole.CodeForbidden, "%s is not in the workspace of thread %s", path, id).WithHint("its workspace is %s", rootOf(t))
	}
	found, err := s.holding(ctx, c, path)
	if err != nil {
		return place{}, err
	}
	if len(found) == 0 {
		return place{}, thole.Errorf(thole.CodeForbidden, "%s is not in the workspace of a thread", path).
			WithHint("commands and files are those of threads: start or resume one that works there")
	}
	best := found[0]
	if changes && slices.ContainsFunc(found[1:], func(t fold.Thread) bool { return rootOf(t) == rootOf(best) && !best.Files.InPlace() }) {
		return place{}, thole.Errorf(thole.CodeConflict, "%s is in the workspaces of several threads that are open here", path).
			WithHint("unsubscribe from the others, or name the thread as threadId with the %s extension", app.Extension)
	}
	if _, err := s.usable(ctx, c, best.ID); err != nil {
		return place{}, err
	}
	return place{best.ID, best.Owner, rootOf(best), path}, nil
}

// holding lists the threads whose workspace has a path, the likeliest first: of those that
// the connection has open the one used last in the innermost root, else the only one.
func (s *Server) holding(ctx context.Context, c *conn, path string) ([]fold.Thread, error) {
	type open struct {
		t    fold.Thread
		used uint64
	}
	var here []open
	c.mu.Lock()
	for _, sub := range c.subs {
		if t := sub.in.Snapshot.Thread; within(path, rootOf(t)) {
			here = append(here, open{t, sub.used})
		}
	}
	c.mu.Unlock()
	slices.SortFunc(here, func(a, b open) int {
		return cmp.Or(len(rootOf(b.t))-len(rootOf(a.t)), cmp.Compare(b.used, a.used))
	})
	var out []fold.Thread
	for _, o := range here {
		out = append(out, o.t)
	}
	if len(out) > 0 {
		return out, nil
	}
	var dirs []string
	for dir := path; len(dirs) < maxDirs; dir = filepath.Dir(dir) {
		if dirs = append(dirs, dir); dir == "/" {
			break
		}
	}
	page, err := s.cfg.Threads.List(ctx, c.who(), thread.Filter{Dirs: dirs, PageParams: thread.PageParams{Limit: 50, Desc: true}})
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(page.Items, func(t fold.Thread) bool { return !within(path, rootOf(t)) })
	slices.SortStableFunc(out, func(a, b fold.Thread) int { return len(rootOf(b)) - len(rootOf(a)) })
	if len(out) > 1 && rootOf(out[0]) == rootOf(out[1]) && !out[0].Files.InPlace() {
		return nil, thole.Errorf(thole.CodeConflict, "%s is in the workspaces of several threads", path).
			WithHint("resume the one that is meant on this connection, or name it as threadId with the %s extension", app.Extension)
	}
	return out, nil
}

// usable is a thread that the client may see and that is in use.
func (s *Server) usable(ctx context.Context, c *conn, id thole.ThreadID) (fold.Thread, error) {
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err == nil && t.Archived {
		err = thole.Errorf(thole.CodeConflict, "thread %s is archived", id).WithHint("unarchive it first: thole thread unarchive %s", id)
	}
	return t, err
}

// rootOf is the directory that a thread's workspace begins with.
func rootOf(t fold.Thread) string {
	if t.Files.InPlace() {
		return t.Files.Dir
	}
	return thole.WorkspaceRoot
}

func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// confined is the sandbox of file calls.
func (p place) confined() *exec.Sandbox { return executorclient.Confined(p.root) }

// inExecutor calls methods of the exec-server in a thread's executor, in one session that
// ends with the connection at the latest.
func (s *Server) inExecutor(c *conn, action authz.Action, id thole.ThreadID, do func(ctx context.Context, x *executorclient.Exec) error) error {
	ctx, cancel := context.WithTimeout(c.rpc.Context(), fileTime)
	defer cancel()
	x, done, err := s.cfg.Executors.Exec(ctx, c.who(), action, id, true, nil)
	if err != nil {
		return err
	}
	defer done()
	return do(ctx, x)
}

// fileError gives a refusal of the exec-server the code that the contract has for it.
func fileError(err error) error {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		return err
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: refused.Message}
	if strings.HasSuffix(refused.Message, ")") && strings.Contains(refused.Message, "(os error ") || refused.Code == exec.CodeInternal {
		out.Code = jsonrpc.CodeInternal
	}
	return out
}

// workspaces is what a connection has in executors.
type workspaces struct {
	commands commands
	watches  watches
	searches searches
}

// end frees what a gone connection held.
func (w *workspaces) end() { w.watches.end() }

// notify sends notifications that belong to this connection alone, after what the client
// has yet to read. It reports false when the connection has ended.
func (c *conn) notify(method string, params any) bool {
	out := pick(c.peer(), []*frame{note(method, thole.Millis(c.srv.cfg.Now()), params)})
	if len(out) == 0 {
		return c.rpc.Err() == nil
	}
	if !c.room(func() bool { return true }) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sendLocked(out)
}
