package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/tholehq/thole/internal/plain"
)

const commandTime = 10 * time.Second

// kept are the variables of the owner that a command gets.
var kept = []string{"PATH", "HOME", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"}

// Command runs a program without a shell. It has the notice on its standard input and its
// main parts in variables.
func Command(argv []string, getenv func(string) string) Target {
	return command(argv, getenv, commandTime)
}

func command(argv []string, getenv func(string) string, most time.Duration) Target {
	return Target{Name: "command", Send: func(ctx context.Context, n Notice) error {
		env := append(environ(getenv, kept...), "THOLE_EVENT="+n.Event, "THOLE_THREAD="+n.Thread, "THOLE_TITLE="+n.Title, "THOLE_URL="+n.URL)
		return run(ctx, argv, env, append(n.body(), '\n'), most)
	}}
}

func environ(getenv func(string) string, names ...string) (env []string) {
	for _, name := range names {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// run ends a program that takes too long, with what it started.
func run(ctx context.Context, argv, env []string, stdin []byte, most time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it ran for more than %s", most))
	defer cancel()
	var said tail
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stderr = env, "/", bytes.NewReader(stdin), &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 500 * time.Millisecond // for what it left running with its streams
	err := cmd.Run()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(said) > 0:
		return fmt.Errorf("%w: %s", err, plain.Line(string(bytes.TrimSpace(said))))
	}
	return err
}

// tail keeps the end of what was written to it.
type tail []byte

func (t *tail) Write(b []byte) (int, error) {
	*t = append(*t, b...)
	if over := len(*t) - 512; over > 0 {
		*t = append((*t)[:0], (*t)[over:]...)
	}
	return len(b), nil
}
