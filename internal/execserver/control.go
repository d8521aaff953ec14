//go:build linux

package execserver

import (
	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/jsonrpc"
	children "github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/protocol/exec"
)

// signal interrupts a process group. A process that is gone is no error.
func (c *conn) signal(req *jsonrpc.Request, proc *process) {
	var p exec.SignalParams
	if e := decode(req.Params, &p); e != nil {
		_ = req.Error(e)
		return
	}
	if p.Signal != exec.SignalInterrupt {
		_ = req.Error(jsonrpc.Errorf(exec.CodeInvalidParams, "unknown variant `%s`, expected `interrupt`", p.Signal))
		return
	}
	if proc != nil {
		proc.signal(unix.SIGINT)
	}
	_ = req.Reply(exec.Empty{})
}

// resize sets a terminal's size; the kernel signals the foreground group.
func (c *conn) resize(req *jsonrpc.Request, proc *process, id string) {
	var p exec.ResizeParams
	e := decode(req.Params, &p)
	switch {
	case e != nil:
	case p.Rows == 0 || p.Cols == 0:
		e = jsonrpc.Errorf(exec.CodeInvalidParams, "rows and cols must be greater than zero")
	case proc == nil:
		e = jsonrpc.Errorf(exec.CodeInvalidRequest, "unknown process id %s", id)
	case proc.ptmx == nil:
		e = jsonrpc.Errorf(exec.CodeInvalidRequest, "process %s has no terminal", id)
	default:
		if err := children.Resize(proc.ptmx, p.Cols, p.Rows); err != nil && !proc.over() {
			e = jsonrpc.Errorf(exec.CodeInternal, "%s", osText(err))
		}
	}
	c.reply(req, exec.Empty{}, e)
}

func (p *process) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

func (ses *session) over() bool {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	return ses.ended
}
