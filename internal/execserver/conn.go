//go:build linux

package execserver

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

const (
	ingressLimit  = 16 << 10 // requests read and not yet begun
	ingressBytes  = 64 << 20 // of them; one more of any size is taken
	outboundBytes = 1 << 20  // beyond it processes and answers wait for the client to read
	longPolls     = 1024     // waiting process/read of one connection
	httpRequests  = 64
	maxID         = 1024 // of a process or a write: they are remembered
)

// conn is one connection. Requests come one at a time from the dispatcher of the
// rpc connection; what may take long leaves it, so that a long poll or a large
// file never delays a terminate.
type conn struct {
	srv *Server
	rpc *jsonrpc.Conn

	// Written by the dispatcher only, before any goroutine that reads it starts.
	ses         *session
	initialized bool

	files   lane
	handles handles
	watch   missingWatch
	changes changes
	polls   chan struct{}
	https   httpStreams
	wg      sync.WaitGroup
}

func newConn(s *Server, stream jsonrpc.Stream) *conn {
	c := &conn{srv: s, polls: make(chan struct{}, longPolls)}
	c.files.width = s.cfg.ConcurrentRequests
	c.rpc = jsonrpc.NewConn(stream, jsonrpc.Options{
		Handler:       c,
		Limits:        jsonrpc.Limits{WholeRunes: true},
		IngressLimit:  ingressLimit,
		IngressBytes:  ingressBytes,
		OutboundBytes: outboundBytes,
		Overflow:      jsonrpc.OverflowBlock,
		OnMalformed: func(err *jsonrpc.DecodeError) jsonrpc.Reaction {
			return jsonrpc.Answer(jsonrpc.Errorf(exec.CodeInvalidRequest, "failed to parse JSON-RPC message: %s", err))
		},
		OnUnknownResponse: func(jsonrpc.Message) jsonrpc.Reaction {
			return jsonrpc.CloseWith("answer to a request never made")
		},
	})
	return c
}

func (c *conn) run(ctx context.Context) error {
	err := c.rpc.Run(ctx)
	if c.ses != nil {
		c.ses.detach(c)
	}
	c.watch.stop()
	c.changes.stop()
	c.files.drain()
	c.wg.Wait()
	c.handles.closeAll()
	return err
}

// Notification takes initialized; any other notification ends the connection.
func (c *conn) Notification(n *jsonrpc.Notification) {
	switch {
	case n.Method != exec.NotifyInitialized:
		c.rpc.Close("unexpected notification " + n.Method)
	case c.ses == nil:
		c.rpc.Close("initialized before initialize")
	default:
		c.initialized = true
	}
}

// Request routes one request.
func (c *conn) Request(req *jsonrpc.Request) {
	if req.Method == exec.MethodInitialize {
		c.initialize(req)
		return
	}
	family := familyOf(req.Method)
	switch {
	case family == "":
		_ = req.Error(jsonrpc.Errorf(exec.CodeMethodNotFound, "exec-server does not implement `%s`", req.Method))
		return
	case c.ses == nil:
		_ = req.Error(jsonrpc.Errorf(exec.CodeInvalidRequest, "client must call initialize before using %s methods", family))
		return
	case !c.initialized:
		_ = req.Error(jsonrpc.Errorf(exec.CodeInvalidRequest, "client must send initialized before using %s methods", family))
		return
	}
	switch req.Method {
	case exec.MethodEnvironmentInfo:
		c.reply(req, c.srv.info, noParams(req.Params))
	case exec.MethodEnvironmentStatus:
		c.reply(req, exec.StatusResult{Status: "ready"}, noParams(req.Params))
	case exec.MethodHTTPRequest:
		c.httpRequest(req)
	case exec.MethodProcessStart, exec.MethodProcessRead, exec.MethodProcessWrite,
		exec.MethodProcessSignal, exec.MethodProcessTerminate, exec.MethodProcessResize:
		c.processRequest(req)
	default:
		c.taken(req, c.files.do(len(req.Params), func() { c.fileRequest(req) }))
	}
}

func (c *conn) reply(req *jsonrpc.Request, result any, e *jsonrpc.Error) {
	if e != nil {
		_ = req.Error(e)
		return
	}
	_ = req.Reply(result)
}

func familyOf(method string) string {
	switch method {
	case exec.MethodProcessStart, exec.MethodProcessRead, exec.MethodProcessWrite, exec.MethodProcessSignal,
		exec.MethodProcessTerminate, exec.MethodProcessResize:
		return "exec"
	case exec.MethodHTTPRequest:
		return "http"
	case exec.MethodEnvironmentInfo:
		return "environment info"
	case exec.MethodEnvironmentStatus:
		return "environment status"
	case exec.MethodEnvironmentConfig:
		return "environment config"
	}
	if _, ok := fileMethods[method]; ok && strings.HasPrefix(method, "fs/") {
		return "filesystem"
	}
	return ""
}

// initialize attaches the connection to a session. After a failure it may be
// tried again. Notifications of a resumed session flow from the attachment on,
// possibly before the answer.
func (c *conn) initialize(req *jsonrpc.Request) {
	var p exec.InitializeParams
	if e := decode(req.Params, &p); e != nil {
		_ = req.Error(e)
		return
	}
	if c.ses != nil {
		_ = req.Error(jsonrpc.Errorf(exec.CodeInvalidRequest, "initialize may only be sent once per connection"))
		return
	}
	ses, e := c.srv.attach(p.ResumeSessionID, p.EndWithConnection, c)
	if e != nil {
		_ = req.Error(e)
		return
	}
	c.ses = ses
	_ = req.Reply(exec.InitializeResult{SessionID: ses.id, EnvironmentInfo: c.srv.info})
}

// processRequest runs in the dispatcher, in order, unless file requests that came
// earlier are under way: a start must not overtake the file it needs, nor a
// write the start before it. A known process is never kept waiting by files.
func (c *conn) processRequest(req *jsonrpc.Request) {
	var p exec.ProcessParams
	if req.Method == exec.MethodProcessStart {
		c.taken(req, c.files.after(len(req.Params), func() { c.start(req) }))
		return
	}
	if e := decode(req.Params, &p); e != nil {
		_ = req.Error(e)
		return
	}
	if proc := c.ses.lookup(p.ProcessID); proc != nil {
		c.control(req, proc, p.ProcessID)
		return
	}
	c.taken(req, c.files.after(len(req.Params), func() { c.control(req, c.ses.lookup(p.ProcessID), p.ProcessID) }))
}

// taken answers a request that found no room.
func (c *conn) taken(req *jsonrpc.Request, ok bool) {
	if !ok {
		_ = req.Error(jsonrpc.Overloaded())
	}
}

// control answers requests about a process; proc is nil when there is none.
func (c *conn) control(req *jsonrpc.Request, proc *process, id string) {
	switch req.Method {
	case exec.MethodProcessRead:
		c.readProcess(req, proc, id)
	case exec.MethodProcessWrite:
		var p exec.WriteParams
		e := decode(req.Params, &p)
		if e == nil && p.WriteID == "" {
			e = jsonrpc.Errorf(exec.CodeInvalidParams, "writeId must not be empty")
		}
		if e == nil && len(p.WriteID) > maxID {
			e = jsonrpc.Errorf(exec.CodeInvalidParams, "writeId must not exceed %d bytes", maxID)
		}
		switch {
		case e != nil:
			_ = req.Error(e)
		case proc == nil:
			_ = req.Reply(exec.WriteResult{Status: exec.WriteUnknownProcess})
		case proc.stdin == nil:
			_ = req.Reply(exec.WriteResult{Status: exec.WriteStdinClosed})
		default:
			proc.stdin.write(req, p.WriteID, p.Chunk, p.CloseStdin && proc.ptmx == nil)
		}
	case exec.MethodProcessSignal:
		c.signal(req, proc)
	case exec.MethodProcessResize:
		c.resize(req, proc, id)
	case exec.MethodProcessTerminate:
		_ = req.Reply(exec.TerminateResult{Running: proc != nil && proc.terminate()})
	}
}

// readProcess answers at once or, when it has to wait, from a goroutine.
func (c *conn) readProcess(req *jsonrpc.Request, proc *process, id string) {
	var p exec.ReadParams
	if e := decode(req.Params, &p); e != nil {
		_ = req.Error(e)
		return
	}
	if proc == nil {
		_ = req.Error(jsonrpc.Errorf(exec.CodeInvalidRequest, "unknown process id %s", id))
		return
	}
	res, final, ch := proc.read(&p)
	if final || p.WaitMs == nil || *p.WaitMs == 0 {
		_ = req.Reply(res)
		return
	}
	select {
	case c.polls <- struct{}{}:
	default:
		_ = req.Error(jsonrpc.Overloaded())
		return
	}
	wait := time.Duration(min(*p.WaitMs, uint64(24*time.Hour/time.Millisecond))) * time.Millisecond
	c.wg.Go(func() {
		defer func() { <-c.polls }()
		timer := time.NewTimer(wait)
		defer timer.Stop()
		room := int64(copies * exec.RetainedBytes)
		if p.MaxBytes != nil {
			room = copies * int64(min(*p.MaxBytes, exec.RetainedBytes-chunkSize)+chunkSize) // one chunk in any case
		}
		for {
			select {
			case <-ch:
				if !c.ses.held.answers.wait(c.rpc.Context(), room) {
					return
				}
				if res, final, ch = proc.read(&p); final {
					_ = req.Reply(res)
				}
				c.ses.held.answers.give(room)
				if final {
					return
				}
				continue
			case <-timer.C:
			case <-c.rpc.Done():
				return
			}
			break
		}
		_ = req.Reply(res)
	})
}
