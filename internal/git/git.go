// Package git runs git where it cannot hurt. A repository's configuration and
// attributes name programs that git starts, so over a repository that an agent could
// write, or that a user only has, git runs in a throwaway box without a network (Run).
// Over a repository that only the server writes it runs on the host (Own), and only
// there it reaches another machine (Remote). Whichever it is, git gets an environment
// and a configuration of this package. It knows no thread and decides about no path:
// callers say what a box shows.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

// Runner runs git.
type Runner struct {
	// Box is bubblewrap's path, asked at each run, or why there is none: then nothing
	// runs. "" is isolation none, which a person typed: git runs without a box, with the
	// same environment and configuration.
	Box func(context.Context) (string, error)
	// UID is whom git runs as in a box where a command names nobody, 0 for our own user.
	// It counts for root only.
	UID int
	// Self is the thole program, which shows root's files to a box of another user. Without
	// it that user must be able to reach them by itself.
	Self string
	// Program is git, default the one on PATH.
	Program string

	refuses sync.Map // of bubblewrap's path: whether it can refuse namespaces
}

// Cmd is one run of git.
type Cmd struct {
	Dir  string   // the working directory, a path of the host, inside too
	Args []string // after "git"
	// Show and Write are paths of the host that a box shows under their own name,
	// read-only and writable. A box shows nothing else but the system's programs.
	Show, Write []string
	// Readable has others read what git writes for a user, as the user's own git would: the
	// server's own files are for nobody else.
	Readable bool
	Env      map[string]string // GIT_DIR, GIT_INDEX_FILE and the like
	Config   map[string]string // on top of the safe set
	Stdin    io.Reader
	// Stdout gets what git writes; nil: it is collected and returned. More than Limit bytes
	// fail the run; 0 is 64 MiB for what is collected and no limit for what is passed on.
	Stdout io.Writer
	// Stderr gets what git says besides, which an Error has the end of all the same.
	Stderr io.Writer
	// Files is a directory whose files git looks at, "" for none: pipes in it that would hold
	// git end the run with a PipesError. Hide are pipes that a box shows as empty devices.
	Files string
	Hide  []string
	// UID is whom git runs as, for root: the owner of the files.
	UID   int
	Limit int64
	// Timeout bounds the run, default 10 minutes.
	Timeout time.Duration
}

const (
	defaultLimit   = 64 << 20
	defaultTimeout = 10 * time.Minute
	maxStderr      = 16 << 10
	// lingers is how long a killed git's output is awaited: a program that it started may
	// hold it open.
	lingers = 2 * time.Second
)

// Error is a run of git that failed.
type Error struct {
	Args   []string
	Exit   int // -1: it was killed
	Stderr string
}

func (e *Error) Error() string {
	text := strings.TrimSpace(e.Stderr)
	if text == "" {
		text = "exit status " + strconv.Itoa(e.Exit)
	}
	return "git " + e.name() + ": " + text
}

// name is the subcommand, without options before it.
func (e *Error) name() string {
	for _, a := range e.Args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return strings.Join(e.Args, " ")
}

// ErrTooLong marks a run whose output went beyond its limit.
var ErrTooLong = errors.New("git wrote more than expected")

// Run runs git in a box.
func (r *Runner) Run(ctx context.Context, c Cmd) ([]byte, error) {
	bwrap, err := r.Box(ctx)
	if err != nil {
		return nil, fmt.Errorf("run git: %w", err)
	}
	program, err := r.program()
	if err != nil {
		return nil, err
	}
	args := c.Args
	if c.Readable {
		args = append([]string{"readably"}, c.Args...)
		c.Config = maps.Clone(c.Config)
		if c.Config == nil {
			c.Config = map[string]string{}
		}
		c.Config["alias.readably"] = "!umask 022 && exec git"
	}
	ctx, stop := c.watchPipes(ctx)
	defer stop()
	env := environ(c.Env, safe("never"), c.Config)
	if unguarded.Build { // as a program that trusts the repository would
		bwrap, env = "", environ(c.Env, map[string]string{"safe.directory": "*"}, c.Config)
	}
	if bwrap == "" {
		return c.run(ctx, exec.Cmd{Path: program, Args: append([]string{"git"}, args...), Dir: c.Dir, Env: env})
	}
	cmd, err := r.boxed(ctx, bwrap, program, args, c)
	if err != nil {
		return nil, err
	}
	cmd.Env = env
	defer func() {
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
	}()
	return c.run(ctx, cmd)
}

// Own runs git over a repository that only the server writes.
func (r *Runner) Own(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return r.RunOwn(ctx, Cmd{Dir: dir, Args: args})
}

// RunOwn is Own for what needs more than arguments.
func (r *Runner) RunOwn(ctx context.Context, c Cmd) ([]byte, error) {
	program, err := r.program()
	if err != nil {
		return nil, err
	}
	return c.run(ctx, exec.Cmd{Path: program, Args: append([]string{"git"}, c.Args...), Dir: c.Dir, Env: environ(c.Env, safe("never"), c.Config)})
}

// program is git's path.
func (r *Runner) program() (string, error) {
	if r.Program != "" {
		return r.Program, nil
	}
	path, err := exec.LookPath("git")
	if err != nil {
		return "", thole.Errorf(thole.CodeUnsupported, "git is not installed: %w", err).WithHint("apt-get install git")
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return path, nil
}

// run starts the command and waits. The prepared command is a template: its context,
// streams and bounds are the same for every kind of run.
func (c Cmd) run(ctx context.Context, prepared exec.Cmd) ([]byte, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, prepared.Path)
	cmd.Args, cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr = prepared.Args, prepared.Dir, prepared.Env, prepared.ExtraFiles, prepared.SysProcAttr
	cmd.WaitDelay = lingers
	var collected bytes.Buffer
	out := &bounded{w: c.Stdout, left: c.Limit, stop: cancel}
	if out.left == 0 {
		out.left = -1
	}
	if c.Stdout == nil {
		out.w = &collected
		if c.Limit == 0 {
			out.left = defaultLimit
		}
	}
	said := &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, out, said
	if c.Stderr != nil {
		cmd.Stderr = io.MultiWriter(said, c.Stderr)
	}
	if f, ok := c.Stdout.(*os.File); ok && c.Limit == 0 {
		cmd.Stdout = f // without a copy
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case out.err != nil:
		return nil, fmt.Errorf("git %s: %w", (&Error{Args: c.Args}).name(), out.err)
	case err == nil:
		return collected.Bytes(), nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("git %s did not end in time: %w", (&Error{Args: c.Args}).name(), context.DeadlineExceeded)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit):
		return collected.Bytes(), &Error{Args: slices.Clone(c.Args), Exit: exit.ExitCode(), Stderr: said.String()}
	}
	return nil, fmt.Errorf("git %s: %w", (&Error{Args: c.Args}).name(), err)
}

// bounded passes on a number of bytes, and ends the run with the first one beyond.
type bounded struct {
	w    io.Writer
	left int64 // -1: as many as there are
	stop func()
	err  error
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left >= 0 && int64(len(p)) > b.left {
		b.err = ErrTooLong
		b.stop()
		return 0, b.err
	}
	n, err := b.w.Write(p)
	if b.left >= 0 {
		b.left -= int64(n)
	}
	if err != nil {
		b.err = err
		b.stop()
	}
	return n, err
}

// tail keeps the end of what was written.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*maxStderr {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-maxStderr:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.buf) }
