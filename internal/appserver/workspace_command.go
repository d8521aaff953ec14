package appserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
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

// Bounds of command/exec. The first three are the contract's.
const (
	commandTime   = 10 * time.Second // by default
	commandOutput = 1 << 20          // of each stream, by default
	drainTime     = 2 * time.Second  // for output after the program's end: a child may hold the pipe
	// maxOutput is the most that an answer carries of each stream; more is refused.
	maxOutput = 8 << 20
	// maxCommands is how many programs one connection may run.
	maxCommands = 32
)

// exitTimeout is the exit code of a program that took too long.
const exitTimeout = 124

func (s *Server) registerCommands() {
	inProcess(on(s, "command/exec", s.commandExec), serial.Exclusive, func(p *app.CommandExecParams) string {
		if p.ProcessID == nil { // nobody else can name it
			return "unnamed/" + uintString(s.unnamed.Add(1))
		}
		return commandKey(*p.ProcessID)
	})
	inProcess(on(s, "command/exec/write", s.commandWrite), serial.Exclusive, func(p *app.CommandExecWriteParams) string { return commandKey(p.ProcessID) })
	inProcess(on(s, "command/exec/resize", s.commandResize), serial.Exclusive, func(p *app.CommandExecResizeParams) string { return commandKey(p.ProcessID) })
	inProcess(on(s, "command/exec/terminate", s.commandTerminate), serial.Exclusive, func(p *app.CommandExecTerminateParams) string { return commandKey(p.ProcessID) })
}

func commandKey(id string) string { return "command/" + id }

// commands are the programs that a connection runs. They end with it.
type commands struct {
	mu    sync.Mutex // guards what follows
	count int
	by    map[string]*program // by the client's name
}

// program is one in a thread's executor.
type program struct {
	conn   *conn
	id     string // the client's, "" for none
	tty    bool
	stdin  bool // the client may write
	stream bool // output goes out as it comes
	x      *executorclient.Exec
	done   func()

	writes int  // of stdin; in the process's lane
	shut   bool // stdin is closed; in the process's lane

	mu       sync.Mutex // guards what follows
	cap      int        // of each stream, -1 for none
	seen     [2]int     // bytes of each stream that count
	capped   [2]bool    // no more of it counts
	kept     [2][]byte
	over     bool // no more output counts
	too      bool // more output came than an answer carries
	exit     int
	exited   chan struct{} // closed with exit
	finished chan struct{} // closed when all output came
	gone     chan struct{} // closed when the program is not the client's any more
}

// processName is what the exec-server calls the one program of a session.
const processName = "1"

func (s *Server) commandExec(ctx context.Context, c *conn, p *app.CommandExecParams) (answer, error) {
	limit, size, err := checkCommand(p)
	if err != nil {
		return answer{}, err
	}
	at, err := s.commandPlace(ctx, c, p)
	if err != nil {
		return answer{}, err
	}
	cmd := &program{
		conn: c, id: str(p.ProcessID), tty: p.TTY, stdin: p.TTY || p.StreamStdin, stream: p.TTY || p.StreamStdoutStderr, cap: commandOutput,
		exited: make(chan struct{}), finished: make(chan struct{}), gone: make(chan struct{}),
	}
	switch {
	case p.DisableOutputCap:
		cmd.cap = -1
	case p.OutputBytesCap != nil:
		cmd.cap = int(min(*p.OutputBytesCap, 1<<40))
	}
	if err := c.space.commands.add(cmd); err != nil {
		return answer{}, err
	}
	if p.TTY {
		if err := s.cfg.Audit.Record(ctx, at.entry("terminal.open", map[string]any{"program": p.Command[0]})); err != nil {
			cmd.end()
			return answer{}, err
		}
	}
	if err := cmd.start(at, p, size); err != nil {
		cmd.end()
		return answer{}, err
	}
	return answer{rest: func(context.Context) (any, []jsonrpc.Frame, error) {
		out, err := cmd.wait(limit)
		return out, nil, err
	}}, nil
}

// checkCommand refuses what cannot be done, in the words of the contract. It returns how
// long the program may take, 0 for ever, and the size of its terminal.
func checkCommand(p *app.CommandExecParams) (limit time.Duration, size app.TerminalSize, err error) {
	switch {
	case len(p.Command) == 0:
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "command must not be empty")
	case p.SandboxPolicy != nil && p.PermissionProfile != nil:
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "`permissionProfile` cannot be combined with `sandboxPolicy`")
	case p.Size != nil && !p.TTY:
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "command/exec size requires tty: true")
	case p.DisableOutputCap && p.OutputBytesCap != nil:
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "command/exec cannot set both outputBytesCap and disableOutputCap")
	case p.DisableTimeout && p.TimeoutMs != nil:
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "command/exec cannot set both timeoutMs and disableTimeout")
	case p.TimeoutMs != nil && *p.TimeoutMs < 0:
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "command/exec timeoutMs must be non-negative, got %d", *p.TimeoutMs)
	case p.Size != nil && (p.Size.Rows == 0 || p.Size.Cols == 0):
		err = errNoSize
	case p.ProcessID == nil && (p.TTY || p.StreamStdin || p.StreamStdoutStderr):
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "command/exec tty or streaming requires a client-supplied processId")
	case p.PermissionProfile != nil:
		err = thole.Errorf(thole.CodeUnsupported, "command/exec permissionProfile: a command has the rights of the thread's executor").WithHint("leave permissionProfile out")
	case p.SandboxPolicy != nil && p.SandboxPolicy.Type != "dangerFullAccess" && p.SandboxPolicy.Type != "externalSandbox":
		err = thole.Errorf(thole.CodeUnsupported, "command/exec sandboxPolicy %s: a command has the rights of the thread's executor", p.SandboxPolicy.Type).
			WithHint("leave sandboxPolicy out: the executor is the sandbox")
	}
	if err != nil {
		return 0, size, err
	}
	if p.Size != nil {
		size = *p.Size
	}
	limit = commandTime
	switch {
	case p.DisableTimeout:
		limit = 0
	case p.TimeoutMs != nil:
		limit = max(1, time.Duration(min(*p.TimeoutMs, int64(24*time.Hour/time.Millisecond)))*time.Millisecond)
	}
	return limit, size, nil
}

var errNoSize = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "command/exec size rows and cols must be greater than 0")

// commandPlace is where a command runs. One that names no absolute directory runs below
// that of the thread that the connection used last.
func (s *Server) commandPlace(ctx context.Context, c *conn, p *app.CommandExecParams) (place, error) {
	dir := str(p.Cwd)
	if !filepath.IsAbs(dir) {
		base, err := s.lastDir(ctx, c, p.InThread)
		if err != nil {
			return place{}, err
		}
		dir = filepath.Join(base, dir)
	}
	return s.where(ctx, c, dir, p.InThread, false)
}

func (s *Server) lastDir(ctx context.Context, c *conn, in app.InThread) (string, error) {
	if in.ThreadID != nil {
		id, err := threadID(*in.ThreadID)
		if err != nil {
			return "", err
		}
		t, err := s.usable(ctx, c, id)
		return t.WorkDir(), err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var last *sub
	for _, s := range c.subs {
		if last == nil || s.used > last.used {
			last = s
		}
	}
	if last == nil {
		return "", thole.Errorf(thole.CodeInvalid, "command/exec: no cwd, and no thread is open on this connection").WithHint("name a directory in the workspace of a thread as cwd")
	}
	return last.in.Snapshot.Thread.WorkDir(), nil
}

func (cs *commands) add(cmd *program) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.by[cmd.id] != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "duplicate active command/exec process id: %s", quote(cmd.id))
	}
	if cs.count >= maxCommands {
		return thole.Errorf(thole.CodeOverloaded, "%d commands run on this connection already", maxCommands).WithHint("wait for one of them, or terminate it")
	}
	if cs.by == nil {
		cs.by = map[string]*program{}
	}
	if cs.count++; cmd.id != "" {
		cs.by[cmd.id] = cmd
	}
	return nil
}

func (cs *commands) find(id string) (*program, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cmd := cs.by[id]; cmd != nil {
		return cmd, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "no active command/exec for process id %s", quote(id))
}

func quote(id string) string {
	raw, _ := json.Marshal(id)
	return string(raw)
}

// start brings the program up.
func (cmd *program) start(at place, p *app.CommandExecParams, size app.TerminalSize) error {
	ctx := cmd.conn.rpc.Context()
	var err error
	if cmd.x, cmd.done, err = cmd.conn.srv.cfg.Executors.Exec(ctx, cmd.conn.who(), authz.RunThread, at.thread, true, cmd.heard); err != nil {
		return err
	}
	params := exec.StartParams{
		ProcessID: processName, Argv: p.Command, Cwd: exec.FormatURI(at.path), TTY: p.TTY, PipeStdin: cmd.stdin && !p.TTY, Rows: size.Rows, Cols: size.Cols,
		Env: map[string]string{}, EnvPolicy: &exec.EnvPolicy{Inherit: "all", IgnoreDefaultExcludes: true, Exclude: []string{}, Set: map[string]string{}, IncludeOnly: []string{}},
	}
	if p.TTY {
		params.EnvPolicy.Set["TERM"] = "xterm-256color"
	}
	for name, value := range p.Env {
		switch {
		case value != nil:
			params.Env[name] = *value
		case strings.ContainsAny(name, "*?"):
			return thole.Errorf(thole.CodeInvalid, "command/exec env: %q is not the name of a variable", name)
		default:
			params.EnvPolicy.Exclude = append(params.EnvPolicy.Exclude, name)
		}
	}
	err = cmd.x.Call(ctx, exec.MethodProcessStart, params, nil)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "failed to spawn command: %s", refused.Message)
	}
	return err
}

// heard takes what the exec-server says of the program. While the client does not read,
// the program waits.
func (cmd *program) heard(method string, raw json.RawMessage) {
	switch method {
	case exec.NotifyOutput:
		var p exec.OutputParams
		if strictjson.Unmarshal(raw, &p) == nil {
			cmd.output(p)
		}
	case exec.NotifyExited:
		var p exec.ExitedParams
		if strictjson.Unmarshal(raw, &p) != nil {
			return
		}
		cmd.mu.Lock()
		defer cmd.mu.Unlock()
		select {
		case <-cmd.exited:
		default:
			cmd.exit = p.ExitCode
			close(cmd.exited)
		}
	case exec.NotifyClosed:
		select {
		case <-cmd.finished:
		default:
			close(cmd.finished)
		}
	}
}

var streams = [2]string{exec.StreamStdout, exec.StreamStderr}

// output passes a piece of output on, or keeps it, up to the cap of its stream.
func (cmd *program) output(p exec.OutputParams) {
	which := 0
	if p.Stream == exec.StreamStderr {
		which = 1
	}
	cmd.mu.Lock()
	data := p.Chunk
	if cmd.over || cmd.capped[which] {
		cmd.mu.Unlock()
		return
	}
	if cmd.cap >= 0 {
		data = data[:min(len(data), cmd.cap-cmd.seen[which])]
	}
	cmd.seen[which] += len(data)
	cmd.capped[which] = cmd.seen[which] == cmd.cap
	reached := cmd.capped[which]
	if cmd.stream {
		cmd.mu.Unlock()
		cmd.conn.notify("command/exec/outputDelta", app.CommandExecOutput{ProcessID: cmd.id, Stream: streams[which], DeltaBase64: data, CapReached: reached})
		return
	}
	if len(cmd.kept[which])+len(data) > maxOutput {
		cmd.over, cmd.too = true, true
		cmd.mu.Unlock()
		cmd.kill()
		return
	}
	cmd.kept[which] = append(cmd.kept[which], data...)
	cmd.mu.Unlock()
}

// wait returns when the program has ended and its output was sent. The connection's end
// ends the program.
func (cmd *program) wait(limit time.Duration) (any, error) {
	defer cmd.end()
	var late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	timedOut := false
	for running := true; running; {
		select {
		case <-cmd.exited:
			running = false
		case <-late:
			timedOut, late = true, nil
			cmd.kill()
		case <-cmd.x.Done():
			select {
			case <-cmd.exited: // its last words
			default:
				return nil, thole.Errorf(thole.CodeUnavailable, "the executor has ended, and the command with it").WithHint("run it again: another executor is started")
			}
			running = false
		case <-cmd.conn.rpc.Done():
			return nil, cmd.conn.rpc.Err()
		}
	}
	drain := time.NewTimer(drainTime)
	defer drain.Stop()
	select {
	case <-cmd.finished:
	case <-drain.C:
	case <-cmd.x.Done():
	case <-cmd.conn.rpc.Done():
	}
	cmd.mu.Lock()
	defer cmd.mu.Unlock()
	cmd.over = true
	if cmd.too {
		return nil, thole.Errorf(thole.CodeInvalid, "command/exec output exceeds %d bytes", maxOutput).WithHint("set outputBytesCap or streamStdoutStderr")
	}
	out := app.CommandExecResult{ExitCode: cmd.exit, Stdout: string(cmd.kept[0]), Stderr: string(cmd.kept[1])}
	if timedOut {
		out.ExitCode = exitTimeout
	}
	return out, nil
}

func (cmd *program) kill() {
	cmd.x.Send(exec.MethodProcessTerminate, exec.ProcessParams{ProcessID: processName})
}

// end lets the name go, and ends the session with whatever the program left running.
func (cmd *program) end() {
	cs := &cmd.conn.space.commands
	cs.mu.Lock()
	if cs.count--; cs.by[cmd.id] == cmd {
		delete(cs.by, cmd.id)
	}
	cs.mu.Unlock()
	cmd.mu.Lock()
	cmd.over = true
	cmd.mu.Unlock()
	close(cmd.gone)
	if cmd.done != nil {
		cmd.done()
	}
}

// control calls the exec-server about a running program. Its end is not waited for in
// vain.
func (cmd *program) control(method string, params, result any) error {
	ctx, cancel := context.WithCancel(cmd.conn.rpc.Context())
	defer cancel()
	go func() {
		select {
		case <-cmd.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := cmd.x.Call(ctx, method, params, result)
	var refused *jsonrpc.Error
	if err != nil && !errors.As(err, &refused) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "command/exec %s is no longer running", quote(cmd.id))
	}
	return err
}

func (s *Server) commandWrite(_ context.Context, c *conn, p *app.CommandExecWriteParams) (answer, error) {
	if p.DeltaBase64 == nil && !p.CloseStdin {
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "command/exec/write requires deltaBase64 or closeStdin")
	}
	data, err := base64.StdEncoding.DecodeString(str(p.DeltaBase64))
	if err != nil {
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid deltaBase64: %s", badBase64(*p.DeltaBase64, err))
	}
	cmd, err := c.space.commands.find(p.ProcessID)
	if err != nil {
		return answer{}, err
	}
	switch {
	case !cmd.stdin:
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "stdin streaming is not enabled for this command/exec")
	case cmd.shut:
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "stdin is already closed")
	case p.CloseStdin && !cmd.tty && !cmd.x.Can().StdinClose:
		return answer{}, thole.Errorf(thole.CodeUnsupported, "command/exec/write closeStdin: the executor was started by an earlier version of thole").WithHint("stop it: thole executor stop")
	}
	if cmd.writes++; p.CloseStdin {
		cmd.shut = true
		if cmd.tty { // a terminal has no end of its own: the line, then the end of file
			data = append(data, "\n\x04"...)
		}
	}
	var res exec.WriteResult
	err = cmd.control(exec.MethodProcessWrite, exec.WriteParams{ProcessID: processName, Chunk: data, WriteID: strconv.Itoa(cmd.writes), CloseStdin: p.CloseStdin && !cmd.tty}, &res)
	if err == nil && res.Status != exec.WriteAccepted {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "stdin is already closed")
	}
	return result(app.Empty{}, err)
}

func (s *Server) commandResize(_ context.Context, c *conn, p *app.CommandExecResizeParams) (answer, error) {
	if p.Size.Rows == 0 || p.Size.Cols == 0 {
		return answer{}, errNoSize
	}
	cmd, err := c.space.commands.find(p.ProcessID)
	if err != nil {
		return answer{}, err
	}
	if !cmd.tty {
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "failed to resize PTY: process is not attached to a PTY")
	}
	return result(app.Empty{}, cmd.control(exec.MethodProcessResize, exec.ResizeParams{ProcessID: processName, Rows: p.Size.Rows, Cols: p.Size.Cols}, nil))
}

func (s *Server) commandTerminate(_ context.Context, c *conn, p *app.CommandExecTerminateParams) (answer, error) {
	cmd, err := c.space.commands.find(p.ProcessID)
	if err != nil {
		return answer{}, err
	}
	cmd.kill()
	return answer{result: app.Empty{}}, nil
}

// badBase64 says what is wrong with base64 in the words that clients know.
func badBase64(text string, err error) string {
	var at base64.CorruptInputError
	if errors.As(err, &at) && int(at) < len(text) {
		return "Invalid symbol " + strconv.Itoa(int(text[at])) + ", offset " + strconv.Itoa(int(at)) + "."
	}
	return err.Error()
}
