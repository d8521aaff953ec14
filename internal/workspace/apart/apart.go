// Package apart does the work of side for a stopped executor in a process of its own.
// What such an executor left, its files and the tree that it stored, is as large as its
// agent made it; the process has a bound of memory and is the first to go where memory
// is short, so that the owner of the home never is. It is started for one piece of work
// and ends with it or with the owner. It decides nothing and has no secret but the links
// that it is given.
package apart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/unpack"
)

const (
	// maxAnswer is what executors may say too: see executorclient.
	maxAnswer = 8 << 20
	// endGrace is how long a process may take to clean up.
	endGrace = 5 * time.Second
)

// Processes starts them.
type Processes struct {
	Self string // the program: thole
}

// Side is the side of a workspace and of conversations that lie elsewhere, until it is
// released.
func (p Processes) Side(ctx context.Context, dir, data string) (workspace.Side, func() error, error) {
	c, err := p.start(ctx, dir, data)
	if err != nil {
		return nil, nil, err
	}
	return workspace.Remote(c), c.end, nil
}

// Export writes a snapshot's files into a directory.
func (p Processes) Export(ctx context.Context, req workspace.ExportRequest) (x workspace.Exported, err error) {
	c, err := p.start(ctx, "", "")
	if err != nil {
		return x, err
	}
	err = c.Post(ctx, "/export", req, &x)
	return x, errors.Join(err, c.end())
}

// Unpack writes an archive's files into a directory.
func (p Processes) Unpack(ctx context.Context, req unpack.Request) (r unpack.Result, err error) {
	c, err := p.start(ctx, "", "")
	if err != nil {
		return r, err
	}
	err = c.Post(ctx, "/unpack", req, &r)
	return r, errors.Join(err, c.end())
}

// caller speaks to one process over one connection.
type caller struct {
	cmd  *exec.Cmd
	conn net.Conn
	http *http.Client
	said *tail
}

func (p Processes) start(ctx context.Context, dir, data string) (*caller, error) {
	failed := func(err error) error {
		return thole.Errorf(thole.CodeUnavailable, "start the process that reads a stopped executor's files: %w", err)
	}
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, failed(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "apart"), os.NewFile(uintptr(fds[1]), "apart")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, failed(err)
	}
	c := &caller{conn: conn, said: &tail{}}
	c.cmd = exec.Command(p.Self, "executor", "files", "--dir", dir, "--data", data) // outlives a call that is given up, to clean up
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                         // a terminal's signals are the owner's
	c.cmd.ExtraFiles, c.cmd.Stderr = []*os.File{theirs}, c.said
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(failed(err), conn.Close())
	}
	var taken atomic.Bool
	c.http = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxConnsPerHost: 1,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if taken.Swap(true) {
				return nil, net.ErrClosed
			}
			return conn, nil
		}}}
	return c, nil
}

// Post implements workspace.Caller.
func (c *caller) Post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://apart"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil && ctx.Err() != nil {
		return thole.Errorf(thole.CodeUnavailable, "%w", context.Cause(ctx))
	}
	if err != nil {
		return c.ended(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return jsonhttp.ReadError(resp)
	}
	if out == nil {
		return nil
	}
	answer := &io.LimitedReader{R: resp.Body, N: maxAnswer + 1}
	if err := strictjson.Read(answer, out); answer.N == 0 {
		return thole.Errorf(thole.CodeInvalid, "the executor's files come to an answer of more than %d bytes", maxAnswer)
	} else if err != nil {
		return c.ended(err)
	}
	return nil
}

// ended says why nothing comes any more.
func (c *caller) ended(err error) error {
	_ = c.end()
	return thole.Errorf(thole.CodeUnavailable, "the process that reads a stopped executor's files ended (%s): %w%s", c.cmd.ProcessState, err, c.said).
		WithHint("it may take 4 GiB of memory; remove files that are not needed in thole thread terminal")
}

// end hangs up, which ends the process, and waits for it.
func (c *caller) end() error {
	_ = c.conn.Close()
	kill := time.AfterFunc(endGrace, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Wait() // what it said before counts, not how it ended
	}
	return nil
}

// tail keeps the beginning of what a process says when it dies.
type tail struct{ b bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p[:min(len(p), max(0, 300-t.b.Len()))])
	return len(p), nil
}

func (t *tail) String() string {
	if t.b.Len() == 0 {
		return ""
	}
	return ": " + t.b.String()
}
