package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/executor"
)

// The places an agent sees inside bubblewrap.
const (
	sandboxWorkspace = "/workspace"
	sandboxHome      = "/home/agent"
	sandboxRun       = "/run/thole"
)

// Start implements executor.Driver.
func (d *Driver) Start(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	if err := d.Check(ctx); err != nil {
		return executor.Info{}, err
	}
	info, err := d.Inspect(ctx, id)
	switch {
	case err == nil && info.State == executor.Running:
		return info, nil
	case err == nil && info.State == executor.Missing:
		return info, executor.ErrNotFound
	}
	// Processes that do not answer are of no use to anyone.
	if err := d.Stop(ctx, id); err != nil {
		return executor.Info{}, err
	}
	if err := d.newToken(id); err != nil {
		return executor.Info{}, err
	}
	if err := os.Remove(d.dir(id, "run", "d.sock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return executor.Info{}, err
	}
	exited, err := d.spawn(id)
	if err != nil {
		return executor.Info{}, thole.Errorf(thole.CodeUnavailable, "start executor: %w", err)
	}
	return d.awaitReady(ctx, id, exited)
}

// newToken makes the bearer token of this start. The file is how executord and a
// later adopter learn it; it is never on a command line.
func (d *Driver) newToken(id thole.ExecutorID) error {
	var b [32]byte
	rand.Read(b[:])
	return atomicfile.Write(d.dir(id, "run", "token"), []byte(hex.EncodeToString(b[:])), 0o600)
}

// spawn starts executord detached: in its own session, with a log file for
// output, so that it outlives us. The channel is closed when it exits while we
// are still there.
func (d *Driver) spawn(id thole.ExecutorID) (<-chan struct{}, error) {
	logFile, err := os.OpenFile(d.dir(id, "run", "executord.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	l, err := d.label(id)
	if err != nil {
		return nil, err
	}
	doors, err := d.cfg.Groups.make(id, l.Spec.Limits)
	if err != nil {
		return nil, err
	}
	tools := d.cfg.Tools()
	name, args := d.command(id, tools)
	name, args = enter(doors, name, args)
	cmd := exec.Command(name, args...)
	cmd.Dir = d.dir(id, "workspace")
	cmd.Env = d.environ(id, tools)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // only to reap it; how it ended is in its log
	}()
	return exited, nil
}

func (d *Driver) environ(id thole.ExecutorID, tools Tools) []string {
	env := []string{marker(id), "PATH=" + tools.path(), "LANG=C.UTF-8", "HOME=" + d.dir(id, "home")}
	if d.cfg.Bwrap != "" {
		env[len(env)-1] = "HOME=" + sandboxHome
	}
	for k, v := range tools.Env {
		env = append(env, k+"="+v)
	}
	return env
}

// path is where agents find programs: the system's, and the directories of the
// CLIs.
func (t Tools) path() string {
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	for _, p := range t.Readable {
		if st, err := os.Stat(p); err == nil && !st.IsDir() {
			p = filepath.Dir(p)
		}
		dirs = append(dirs, p)
	}
	return strings.Join(dirs, ":")
}

// command is executord's command line, inside bubblewrap where there is one.
func (d *Driver) command(id thole.ExecutorID, tools Tools) (string, []string) {
	serve := func(workspace, state, auth, home, tmp, run string) []string {
		return []string{"executor", "serve", "--listen", "unix:" + run + "/d.sock", "--token-file", run + "/token",
			"--workspace", workspace, "--state", state, "--auth", auth, "--agent-home", home, "--tmp", tmp}
	}
	if d.cfg.Bwrap == "" {
		return d.cfg.Binary, serve(d.dir(id, "workspace"), d.dir(id, "state"), d.dir(id, "auth"), d.dir(id, "home"), d.dir(id, "tmp"), d.dir(id, "run"))
	}
	args := []string{"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL", "--new-session",
		"--proc", "/proc", "--dev", "/dev"}
	args = append(args, systemBinds()...)
	args = append(args,
		"--ro-bind", d.cfg.Binary, sandboxRun+"/thole",
		"--bind", d.dir(id, "run"), sandboxRun+"/run",
		"--bind", d.dir(id, "state"), sandboxRun+"/state",
		"--bind", d.dir(id, "auth"), sandboxRun+"/auth",
		"--bind", d.dir(id, "home"), sandboxHome,
		"--bind", d.dir(id, "tmp"), "/tmp",
		"--bind", d.dir(id, "workspace"), sandboxWorkspace)
	for _, p := range tools.sorted() { // behind /tmp, which would hide what lies there
		args = append(args, "--ro-bind-try", p, p)
	}
	args = append(args, "--chdir", sandboxWorkspace, "--", sandboxRun+"/thole")
	return d.cfg.Bwrap, append(args, serve(sandboxWorkspace, sandboxRun+"/state", sandboxRun+"/auth", sandboxHome, "/tmp", sandboxRun+"/run")...)
}

// sorted lists the extra binds, parents first so that none hides another. What
// the system's directories show already stays as it is there: a link in them that
// leads elsewhere cannot be mounted over.
func (t Tools) sorted() []string {
	out := slices.DeleteFunc(slices.Clone(t.Readable), func(p string) bool {
		return strings.HasPrefix(p, "/usr/") || strings.HasPrefix(p, "/opt/")
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// systemBinds is the read-only part of the machine an agent needs to run
// programs, resolve names and trust certificates.
func systemBinds() []string {
	var args []string
	for _, dir := range []string{"/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
			continue
		}
		args = append(args, "--ro-bind-try", dir, dir)
	}
	for _, name := range []string{"resolv.conf", "hosts", "host.conf", "nsswitch.conf", "passwd", "group", "localtime", "ssl", "pki",
		"ca-certificates", "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types", "protocols", "services", "gitconfig"} {
		args = append(args, "--ro-bind-try", "/etc/"+name, "/etc/"+name)
	}
	return args
}

// awaitReady waits until executord answers, or explains from its log why not.
func (d *Driver) awaitReady(ctx context.Context, id thole.ExecutorID, exited <-chan struct{}) (executor.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.StartTimeout)
	defer cancel()
	l, err := d.label(id)
	if err != nil {
		return executor.Info{}, err
	}
	info := executor.Info{ID: id, Thread: l.Spec.Thread, Created: l.Created, State: executor.Stopped}
	for asked := (backoff.Policy{Min: time.Millisecond, Max: 100 * time.Millisecond}).Begin(); ; {
		got, err := d.reach(ctx, info)
		if err == nil {
			return got, nil
		}
		select {
		case <-exited:
			return info, thole.Errorf(thole.CodeUnavailable, "executor ended at once: %s", d.lastLines(id))
		case <-ctx.Done():
			_ = d.Stop(context.WithoutCancel(ctx), id)
			return info, thole.Errorf(thole.CodeUnavailable, "executor was not ready within %s: %s", d.cfg.StartTimeout, d.lastLines(id))
		case <-time.After(asked.Next()):
		}
	}
}

func (d *Driver) lastLines(id thole.ExecutorID) string {
	data, err := os.ReadFile(d.dir(id, "run", "executord.log"))
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	if len(data) > 2000 {
		data = data[len(data)-2000:]
	}
	return strings.TrimSpace(string(data))
}
