package acp

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/version"
)

// program is an MCP server that runs: JSON-RPC, one message a line.
type program struct {
	name  string // as agents see it
	proc  *process.Process
	tools []programTool
	own   map[string]string // names of tools as the server has them, by ours
	ended chan struct{}     // closed when it answers no more

	mu      sync.Mutex // guards what follows, and lines to the program
	next    int64
	waiting map[int64]chan programAnswer
}

// programTool is a tool of a server, as the owner lists it.
type programTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

type programAnswer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

const (
	mcpVersion = "2025-06-18"
	// begins is how long a server may take to start: some fetch themselves first.
	begins     = time.Minute
	lastWords  = 2 * time.Second
	maxListing = 32 // pages of a list of tools
)

// startProgram starts a server and asks for its tools.
func startProgram(ctx context.Context, w wantedServer, cwd string) (*program, error) {
	ctx, cancel := context.WithTimeout(ctx, begins)
	defer cancel()
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	var secrets []string
	for _, v := range w.Env {
		env[v.Name] = v.Value
		secrets = append(secrets, v.Value)
	}
	path, err := find(w.Command, env["PATH"], cwd)
	if err != nil {
		return nil, err
	}
	proc, err := process.Start(process.Spec{Path: path, Args: w.Args, Dir: cwd, Env: env, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	p := &program{name: w.Name, proc: proc, own: map[string]string{}, ended: make(chan struct{}), waiting: map[int64]chan programAnswer{}}
	go p.read()
	if err := p.greet(ctx); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// find is the file of a command.
func find(command, path, cwd string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(cwd, command)
		}
		return command, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if at, err := exec.LookPath(filepath.Join(dir, command)); err == nil && filepath.IsAbs(at) {
			return at, nil
		}
	}
	return "", thole.Errorf(thole.CodeNotFound, "%s is not in the PATH of the editor", command)
}

func (p *program) stop() { p.proc.Stop(lastWords) }

// greet begins the conversation and lists the tools.
func (p *program) greet(ctx context.Context) error {
	hello := object{"protocolVersion": mcpVersion, "capabilities": object{}, "clientInfo": object{"name": "thole", "version": version.Version}}
	var about struct {
		Capabilities struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"capabilities"`
	}
	if err := p.ask(ctx, "initialize", hello, &about); err != nil {
		return err
	}
	if err := p.write(object{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return p.gone()
	}
	if len(about.Capabilities.Tools) == 0 {
		return nil
	}
	taken := map[string]bool{}
	params := object{}
	for range maxListing {
		var page struct {
			Tools []programTool `json:"tools"`
			Next  string        `json:"nextCursor"`
		}
		if err := p.ask(ctx, "tools/list", params, &page); err != nil {
			return err
		}
		for _, t := range page.Tools {
			name := free(identifier(t.Name), taken)
			p.own[name] = t.Name
			t.Name = name
			p.tools = append(p.tools, t)
		}
		if page.Next == "" {
			return nil
		}
		params["cursor"] = page.Next
	}
	return thole.Errorf(thole.CodeInvalid, "its list of tools has more than %d pages", maxListing)
}

// call calls a tool by our name for it.
func (p *program) call(ctx context.Context, tool string, input json.RawMessage) (json.RawMessage, error) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	own, ok := p.own[tool]
	if !ok {
		return nil, thole.Errorf(thole.CodeNotFound, "it has no tool %s any more", tool)
	}
	var out json.RawMessage
	err := p.ask(ctx, "tools/call", object{"name": own, "arguments": input}, &out)
	return out, err
}

// ask makes a request. One that nobody waits for any more is cancelled.
func (p *program) ask(ctx context.Context, method string, params, out any) error {
	got := make(chan programAnswer, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	p.waiting[id] = got
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
	}()
	if err := p.write(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return p.gone()
	}
	select {
	case a := <-got:
		if a.Error != nil {
			return thole.Errorf(thole.CodeUnavailable, "%s: %s", method, a.Error.Message)
		}
		if err := strictjson.Unmarshal(a.Result, out); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "%s: its answer cannot be read: %w", method, err)
		}
		return nil
	case <-p.ended:
		return p.gone()
	case <-ctx.Done():
		_ = p.write(object{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": object{"requestId": id}})
		return thole.Errorf(thole.CodeUnavailable, "%s: it does not answer: %w", method, context.Cause(ctx))
	}
}

// gone says how a server that takes no messages ended.
func (p *program) gone() error {
	p.proc.Stop(lastWords)
	return thole.Errorf(thole.CodeUnavailable, "it ended: %s", p.proc.Diagnosis())
}

func (p *program) write(message any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.proc.Stdin.Write(append(encode(message), '\n')); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "write: %w", err)
	}
	return nil
}

// read takes what the server writes. It is offered nothing that it could ask for.
func (p *program) read() {
	defer close(p.ended)
	defer p.proc.Stdout.Close()
	for lines := process.NewLines(p.proc.Stdout); ; {
		line, err := lines.Next()
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			programAnswer
		}
		if len(line) > maxToolResult || strictjson.Unmarshal(line, &m) != nil || len(m.ID) == 0 {
			continue
		}
		if m.Method == "ping" {
			_ = p.write(object{"jsonrpc": "2.0", "id": m.ID, "result": object{}})
			continue
		}
		if m.Method != "" {
			_ = p.write(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": -32601, "message": "unknown method " + m.Method}})
			continue
		}
		var id int64
		if strictjson.Unmarshal(m.ID, &id) != nil {
			continue
		}
		p.mu.Lock()
		got := p.waiting[id]
		delete(p.waiting, id)
		p.mu.Unlock()
		if got != nil {
			got <- m.programAnswer
		}
	}
}
