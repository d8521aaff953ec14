// Package process starts agent CLIs and ends them together with everything they
// left behind.
//
// It starts a native binary with pipes and exactly the environment it was given:
// no shell, nothing inherited. Agent tools open sessions of their own, so a kill
// by process group misses them; the tree is found by cgroup where we may make
// one, and always by marks that survive setsid, double forks and a cleared
// environment (see tree_linux.go). When the root process exits, for whatever
// reason, its leftovers are killed and reaped.
//
// The package knows nothing of what it runs and owns no protocol. A program on a
// terminal gets one of its own, whose master is the caller's (see terminal.go).
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
)

// drainGrace bounds how long output is read after the root is gone: by then
// every holder of the pipe that we could find was killed.
const drainGrace = 2 * time.Second

// Spec says what to start.
type Spec struct {
	// Path is the absolute path of a native binary.
	Path string
	Args []string // without the program name
	Dir  string
	// Env is the whole environment.
	Env map[string]string
	// Secrets are values that must never show in a diagnosis.
	Secrets []string
	// Box is where the program runs, nil here. Its paths are those of the inside.
	Box *box.Box
}

// Process is a running program and its descendants. All methods are safe for
// concurrent use.
type Process struct {
	// Stdin is closed by Stop; writing to a dead process is an error, not a signal,
	// and one that does not read is killed (see stdin.go). It and Stdout are nil on a
	// terminal.
	Stdin io.WriteCloser
	// Stdout ends with io.EOF when the process and its descendants are gone. The
	// caller reads it to the end, or closes it.
	Stdout io.ReadCloser

	path   string
	root   root
	tree   *tree
	stderr *tail
	stdout *os.File

	stopOnce sync.Once
	done     chan struct{} // closed when the root is reaped and its tree is gone
	err      error         // set before done is closed
}

// Start runs the program. Cancelling ctx later does nothing: the caller ends the
// process with Stop or Kill.
func Start(spec Spec) (*Process, error) {
	if !filepath.IsAbs(spec.Path) {
		return nil, thole.Errorf(thole.CodeInvalid, "start %s: not an absolute path", spec.Path)
	}
	t := newTree()
	p := &Process{path: spec.Path, tree: t, stderr: newTail(spec.Secrets), done: make(chan struct{})}
	var files []io.Closer
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, thole.Errorf(thole.CodeUnavailable, "start %s: %w", filepath.Base(spec.Path), err)
	}
	if err := p.begin(spec, [3]*os.File{inR, outW, errW}); err != nil {
		closeAll()
		return nil, startError(spec, err)
	}
	inR.Close()
	outW.Close()
	errW.Close()
	p.Stdin, p.Stdout, p.stdout = &stdin{File: inW, proc: p, patience: deaf}, &stdout{outR}, outR

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(p.stderr, errR)
		errR.Close()
	}()
	go p.wait(func() {
		deadline := time.Now().Add(drainGrace)
		_ = p.stdout.SetReadDeadline(deadline)
		_ = errR.SetReadDeadline(deadline)
		<-drained
		p.Stdin.Close()
	})
	return p, nil
}

// begin starts the root, here or in its box.
func (p *Process) begin(spec Spec, files [3]*os.File) error {
	env := environ(spec.Env, p.tree.marker)
	if spec.Box != nil {
		child, err := p.tree.startIn(spec.Box, box.Command{Path: spec.Path, Argv: append([]string{spec.Path}, spec.Args...), Env: env, Dir: spec.Dir, Files: files})
		p.root = boxed{child}
		return err
	}
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir, cmd.Env = spec.Dir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	p.root = local{cmd}
	return p.tree.start(cmd)
}

func startError(spec Spec, err error) error {
	name := filepath.Base(spec.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, serr := os.Stat(spec.Dir); spec.Dir != "" && serr != nil {
			return thole.Errorf(thole.CodeInvalid, "start %s: working directory %s: %w", name, spec.Dir, os.ErrNotExist)
		}
		return thole.Errorf(thole.CodeUnavailable, "start %s: %w", name, err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return thole.Errorf(thole.CodeUnavailable, "start %s: %w", name, err).WithHint("check that %s is an executable file for this machine", spec.Path)
	}
	return thole.Errorf(thole.CodeUnavailable, "start %s: %w", name, err)
}

func environ(env map[string]string, marker string) []string {
	out := make([]string, 0, len(env)+1)
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return append(out, marker)
}

// wait reaps the root, kills what it left behind, and lets readers see the end.
func (p *Process) wait(drain func()) {
	err := p.tree.end(p.root)
	drain()
	p.tree.release()
	p.err = err
	close(p.done)
}

// Pid is the root's process id.
func (p *Process) Pid() int { return p.root.pid() }

// Done is closed when the root was reaped and nothing of its tree is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done or ctx and returns how the root ended: nil for exit code 0, an
// *ExitError for another.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// CPU is the processor time of the root and the children it waited for, known
// after Done.
func (p *Process) CPU() time.Duration {
	<-p.done
	return p.root.cpu()
}

// Signal sends a signal to the root only.
func (p *Process) Signal(sig os.Signal) error {
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
		return p.root.signal(sig)
	}
}

// Stop ends the process gracefully: it closes stdin, sends SIGTERM (to one on a
// terminal SIGHUP), and kills the whole tree when the root is not gone within
// grace. It returns when nothing is left, and may be repeated.
func (p *Process) Stop(grace time.Duration) {
	p.stopOnce.Do(func() {
		if p.Stdin == nil { // on a terminal, where shells ignore the other
			_ = p.Signal(syscall.SIGHUP)
			return
		}
		p.Stdin.Close()
		_ = p.Signal(syscall.SIGTERM)
	})
	p.Finish(grace)
}

// Finish lets a process end that should do so by itself, and kills the whole tree
// when it has not within grace.
func (p *Process) Finish(grace time.Duration) {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		p.Kill()
	}
}

// Kill ends the process and every descendant now, and returns when they are gone.
func (p *Process) Kill() {
	select {
	case <-p.done:
	default:
		p.tree.kill()
		<-p.done
	}
}

// Diagnosis says how the process ended, with its last words on stderr: made for
// humans, free of the secrets in Spec.
func (p *Process) Diagnosis() string {
	var b strings.Builder
	select {
	case <-p.done:
		if p.err == nil {
			fmt.Fprintf(&b, "%s exited with code 0", filepath.Base(p.path))
		} else {
			fmt.Fprintf(&b, "%s ended: %v", filepath.Base(p.path), p.err)
		}
	default:
		fmt.Fprintf(&b, "%s is still running", filepath.Base(p.path))
	}
	if s := p.stderr.String(); s != "" {
		b.WriteString("; stderr: ")
		b.WriteString(s)
	}
	return b.String()
}
