package appserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/protocol/exec"
)

const (
	// maxWatches is how many paths one connection may watch.
	maxWatches = 64
	// maxChanged bounds one report of an executor, which names at most so many.
	maxChanged = 4096
	// rewatch is how often an executor that has stopped is looked for. It is not started
	// for a watch: no agent changes anything while it does not run.
	rewatch = 5 * time.Second
)

func (s *Server) registerWatches() {
	inProcess(on(s, "fs/watch", s.fsWatch), serial.Exclusive, func(p *app.FsWatchParams) string { return "watch/" + p.WatchID })
	inProcess(on(s, "fs/unwatch", s.fsUnwatch), serial.Exclusive, func(p *app.FsUnwatchParams) string { return "watch/" + p.WatchID })
}

// watches are the paths that a connection watches. Those of one thread share a session
// with its exec-server.
type watches struct {
	mu    sync.Mutex // guards what follows and watching.names
	by    map[string]*watching
	in    map[thole.ThreadID]*watching
	ended bool
	wg    sync.WaitGroup
}

// watching watches the paths of one thread in its executors, one after the other. Its
// goroutine alone has the session.
type watching struct {
	conn      *conn
	thread    thole.ThreadID
	ops       chan watchOp
	names     int        // watches that are, or are about to be, begun here
	reporting sync.Mutex // held while a change is reported: an ended watch is silent
}

// watchOp begins a watch, or ends it where at is nil.
type watchOp struct {
	id    string
	at    *place
	reply chan error
}

func (s *Server) fsWatch(ctx context.Context, c *conn, p *app.FsWatchParams) (answer, error) {
	at, err := s.where(ctx, c, p.Path, p.InThread, false)
	if err != nil {
		return answer{}, err
	}
	w, err := c.space.watches.take(c, p.WatchID, at.thread)
	if err != nil {
		return answer{}, err
	}
	if err := w.do(watchOp{id: p.WatchID, at: &at}); err != nil {
		c.space.watches.drop(p.WatchID)
		return answer{}, err
	}
	return answer{result: app.FsWatchResult{Path: at.path}}, nil
}

func (s *Server) fsUnwatch(_ context.Context, c *conn, p *app.FsUnwatchParams) (answer, error) {
	c.space.watches.drop(p.WatchID)
	return answer{result: app.Empty{}}, nil
}

// take reserves a watch id, with what will watch it.
func (ws *watches) take(c *conn, id string, in thole.ThreadID) (*watching, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	switch {
	case ws.ended:
		return nil, c.rpc.Err()
	case ws.by[id] != nil:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "watchId already exists: %s", id)
	case len(ws.by) >= maxWatches:
		return nil, thole.Errorf(thole.CodeOverloaded, "%d paths are watched on this connection already", maxWatches).WithHint("unwatch some of them")
	}
	if ws.by == nil {
		ws.by, ws.in = map[string]*watching{}, map[thole.ThreadID]*watching{}
	}
	w := ws.in[in]
	if w == nil {
		w = &watching{conn: c, thread: in, ops: make(chan watchOp)}
		ws.in[in] = w
		ws.wg.Go(w.run)
	}
	w.names++
	ws.by[id] = w
	return w, nil
}

// drop ends a watch, if there is one, and returns when nothing more comes of it.
func (ws *watches) drop(id string) {
	ws.mu.Lock()
	w := ws.by[id]
	ws.mu.Unlock()
	if w == nil {
		return
	}
	w.reporting.Lock() // after what is on its way
	ws.mu.Lock()
	delete(ws.by, id)
	ws.mu.Unlock()
	w.reporting.Unlock()
	_ = w.do(watchOp{id: id})
}

func (ws *watches) watched(id string, by *watching) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.by[id] == by
}

// end returns when nothing is watched any more; the connection has ended.
func (ws *watches) end() {
	ws.mu.Lock()
	ws.ended = true
	ws.mu.Unlock()
	ws.wg.Wait()
}

func (w *watching) do(op watchOp) error {
	op.reply = make(chan error, 1)
	select {
	case w.ops <- op:
		return <-op.reply
	case <-w.conn.rpc.Done():
		return w.conn.rpc.Err()
	}
}

// run serves the watches of a thread until there are none, or the connection has ended.
func (w *watching) run() {
	paths := map[string]place{}
	var x *executorclient.Exec
	done := func() {}
	defer func() { done() }()
	open := func(start bool) (err error) {
		if x, done, err = w.open(start); err != nil {
			x, done = nil, func() {}
			return err
		}
		for id, at := range paths { // nobody saw what changed meanwhile
			if w.arm(x, id, at) == nil {
				w.report(id, []string{at.path})
			}
		}
		return nil
	}
	for {
		var ended <-chan struct{}
		var again <-chan time.Time
		if x != nil {
			ended = x.Done()
		} else if len(paths) > 0 {
			again = time.After(rewatch)
		}
		select {
		case op := <-w.ops:
			if op.at == nil {
				if delete(paths, op.id); x != nil {
					x.Send(exec.MethodUnwatch, exec.UnwatchParams{WatchID: op.id})
				}
				op.reply <- nil
				if w.unused() {
					return
				}
				continue
			}
			var err error
			if x == nil {
				err = open(true)
			}
			if err == nil {
				if err = w.arm(x, op.id, *op.at); err == nil {
					paths[op.id] = *op.at
				}
			}
			op.reply <- err
		case <-ended:
			done()
			x, done = nil, func() {}
		case <-again:
			_ = open(false)
		case <-w.conn.rpc.Done():
			return
		}
	}
}

// unused counts a watch less, and reports whether it was the last.
func (w *watching) unused() bool {
	ws := &w.conn.space.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.names--; w.names > 0 {
		return false
	}
	delete(ws.in, w.thread)
	return true
}

func (w *watching) open(start bool) (*executorclient.Exec, func(), error) {
	x, done, err := w.conn.srv.cfg.Executors.Exec(w.conn.rpc.Context(), w.conn.who(), authz.BrowseFiles, w.thread, start, w.heard)
	if err == nil && !x.Can().FSWatch {
		done()
		err = thole.Errorf(thole.CodeUnsupported, "fs/watch: the executor was started by an earlier version of thole").WithHint("stop it: thole executor stop")
	}
	return x, done, err
}

func (w *watching) arm(x *executorclient.Exec, id string, at place) error {
	ctx, cancel := context.WithTimeout(w.conn.rpc.Context(), fileTime)
	defer cancel()
	return fileError(x.Call(ctx, exec.MethodWatch, exec.WatchParams{WatchID: id, Path: at.uri(), Sandbox: at.confined()}, nil))
}

// heard passes on what an executor reports.
func (w *watching) heard(method string, raw json.RawMessage) {
	var p exec.ChangedParams
	if method != exec.NotifyChanged || strictjson.Unmarshal(raw, &p) != nil || len(p.Paths) > maxChanged {
		return
	}
	paths := make([]string, 0, len(p.Paths))
	for _, uri := range p.Paths {
		if path, err := exec.ParseURI(uri); err == nil {
			paths = append(paths, path)
		}
	}
	if len(paths) > 0 {
		w.report(p.WatchID, paths)
	}
}

func (w *watching) report(id string, paths []string) {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	if w.conn.space.watches.watched(id, w) {
		w.conn.notify("fs/changed", app.FsChanged{WatchID: id, ChangedPaths: paths})
	}
}
