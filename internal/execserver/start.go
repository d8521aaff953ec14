//go:build linux

package execserver

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/protocol/exec"
	"golang.org/x/sys/unix"
)

// start answers process/start. A failed start leaves no trace of the id.
func (c *conn) start(req *jsonrpc.Request) {
	var p exec.StartParams
	if e := decode(req.Params, &p); e != nil {
		_ = req.Error(e)
		return
	}
	cmd, kind, e := c.srv.prepare(&p)
	if e != nil {
		_ = req.Error(e)
		return
	}
	defer cmd.release()
	proc := newProcess(c.ses, p.ProcessID)
	proc.sandboxed, proc.stays = kind != exec.SandboxNone, cmd.stays
	if e := c.ses.reserve(proc); e != nil {
		cmd.stays.End()
		_ = req.Error(e)
		return
	}
	end, err := proc.spawn(cmd)
	if err != nil {
		c.ses.drop(proc)
		cmd.stays.End()
		_ = req.Error(jsonrpc.Errorf(exec.CodeInternal, "%s", osText(err)))
		return
	}
	// The answer is queued before the first notification can be.
	_ = req.Reply(exec.StartResult{ProcessID: p.ProcessID, SandboxType: kind})
	proc.supervise(end)
	if c.ses.over() { // the session ended between reserve and here
		proc.terminate()
	}
}

func (c *command) release() {
	for _, f := range c.extra {
		f.Close()
	}
}

// prepare checks a start in the order clients see errors in and builds the command.
func (s *Server) prepare(p *exec.StartParams) (*command, string, *jsonrpc.Error) {
	if e := refuseUnsupported(p); e != nil {
		return nil, "", e
	}
	if len(p.ProcessID) > maxID {
		return nil, "", jsonrpc.Errorf(exec.CodeInvalidParams, "processId must not exceed %d bytes", maxID)
	}
	cwd, err := exec.ParseURI(p.Cwd)
	if errors.Is(err, exec.ErrForeignPath) {
		err = fmt.Errorf("cwd URI `%s` is not valid on this exec-server host: %w", p.Cwd, err)
	}
	if err != nil {
		return nil, "", invalid(err)
	}
	env, e := environ(p.EnvPolicy, p.Env, s.cfg.Environ)
	if e != nil {
		return nil, "", e
	}
	var policy *sandbox.Policy
	kind := exec.SandboxNone
	if p.Sandbox != nil {
		if policy, err = sandbox.Compile(p.Sandbox, s.place(cwd)); err != nil {
			return nil, "", invalid(err)
		}
		if policy.Confines() {
			kind = exec.SandboxLinux
		}
	}
	if len(p.Argv) == 0 {
		return nil, "", jsonrpc.Errorf(exec.CodeInvalidParams, "argv must not be empty")
	}
	cmd := &command{argv: p.Argv, env: env, dir: cwd, tty: p.TTY, rows: p.Rows, cols: p.Cols, stdin: p.PipeStdin}
	if e := cmd.resolve(p); e != nil {
		return nil, "", e
	}
	if policy != nil && policy.Confines() && s.cfg.Box != nil {
		return nil, "", jsonrpc.Errorf(exec.CodeInvalidParams, "sandbox intent cannot be enforced on this executor: its box makes no sandboxes inside")
	}
	if policy != nil && policy.Confines() {
		arg0 := ""
		if p.Arg0 != nil {
			arg0 = *p.Arg0
		}
		w, err := s.wrapper.Wrap(policy, sandbox.Program{Path: cmd.path, Dir: cwd, Argv: p.Argv, Arg0: arg0, Env: env})
		if err != nil {
			return nil, "", invalid(err)
		}
		cmd.path, cmd.argv, cmd.extra, cmd.stays = w.Path, w.Argv, w.Files, w.Stays
		cmd.dir, cmd.env = "/", nil
	}
	return cmd, kind, nil
}

// place is where profiles are resolved.
func (s *Server) place(cwd string) sandbox.Place {
	return sandbox.Place{Cwd: cwd, TmpDir: lookup(s.cfg.Environ, "TMPDIR"), Own: s.cfg.Own}
}

// refuseUnsupported refuses what would otherwise be silently left out.
func refuseUnsupported(p *exec.StartParams) *jsonrpc.Error {
	if m := p.Metadata; m != nil && m.ThreadID != nil {
		if _, err := uuid.Parse(*m.ThreadID); err != nil {
			return invalid(err)
		}
	}
	if s := p.ShellSnapshot; s != nil { // the cache is left out; its rules stay
		if s.ScopeID == "" || len(s.ScopeID) > 256 {
			return jsonrpc.Errorf(exec.CodeInvalidParams, "shell snapshot scope must be non-empty and at most 256 bytes")
		}
		of := len(p.Argv) > 0 && p.Argv[0] == s.Shell.Path // of another program it asks for nothing
		if n := s.Shell.Name; of && n != "bash" && n != "zsh" && n != "sh" {
			return jsonrpc.Errorf(exec.CodeInvalidParams, "shell snapshots are unsupported for shell `%s`", n)
		}
	}
	if present(p.NetworkProxy) {
		return jsonrpc.Errorf(exec.CodeInvalidParams, "managed network proxies are not supported by this executor")
	}
	if p.EnforceManagedNetwork || present(p.ManagedNetwork) {
		return jsonrpc.Errorf(exec.CodeInvalidParams, "sandbox intent cannot be enforced on this executor: there is no managed network")
	}
	return nil
}

// resolve finds the program in the child's PATH. With a terminal and no sandbox
// an arg0 names the program too; that quirk is the protocol's.
func (c *command) resolve(p *exec.StartParams) *jsonrpc.Error {
	name := p.Argv[0]
	if name == "" {
		return jsonrpc.Errorf(exec.CodeInternal, "missing program for pipe spawn")
	}
	if p.Arg0 != nil {
		c.argv = append([]string{*p.Arg0}, p.Argv[1:]...)
		if p.TTY && p.Sandbox == nil {
			name = *p.Arg0
		}
	}
	for _, s := range append(p.Argv, p.Cwd) {
		if strings.IndexByte(s, 0) >= 0 {
			return jsonrpc.Errorf(exec.CodeInternal, "nul byte found in provided data")
		}
	}
	search := lookup(c.env, "PATH")
	if search == "" && !slices.Contains(c.env, "PATH=") { // an empty one is the working directory
		search = "/usr/local/bin:/bin:/usr/bin"
	}
	path, err := lookPath(name, search, c.dir)
	if err != nil {
		return jsonrpc.Errorf(exec.CodeInternal, "%s", osText(err))
	}
	c.path = path
	return nil
}

// lookPath finds an executable as execvp does: a name with a slash is a path, any
// other is searched, and a forbidden hit is reported only when nothing else was found.
func lookPath(name, path, dir string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var last error = unix.ENOENT
	for d := range strings.SplitSeq(path, ":") {
		if d == "" {
			d = "."
		}
		file := d + "/" + name
		probe := file
		if !strings.HasPrefix(probe, "/") {
			probe = dir + "/" + probe
		}
		if st, err := os.Stat(probe); err != nil || st.IsDir() {
			continue
		}
		if err := unix.Access(probe, unix.X_OK); err != nil {
			last = err
			continue
		}
		return file, nil
	}
	return "", last
}
