package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/sandbox/repository"
)

// Start implements executor.Driver.
func (d *Driver) Start(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	if err := CheckRoot(d.cfg.Root); err != nil {
		return executor.Info{}, err
	}
	bwrap, err := d.box(ctx)
	if err != nil {
		return executor.Info{}, err
	}
	if bwrap != "" {
		if err := d.checkShown(); err != nil {
			return executor.Info{}, err
		}
	}
	if err := d.checkObjects(id, bwrap != ""); err != nil {
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
	if err := d.prepareData(ctx, id, bwrap != ""); err != nil {
		return executor.Info{}, thole.Errorf(thole.CodeUnavailable, "prepare the conversations of executor %s: %w", id, err)
	}
	l, err := d.label(id)
	if err != nil {
		return executor.Info{}, err
	}
	place, err := d.ground(l)
	if err != nil {
		return executor.Info{}, err
	}
	exited, err := d.spawn(id, bwrap, place)
	if err != nil {
		return executor.Info{}, thole.Errorf(thole.CodeUnavailable, "start executor: %w", err)
	}
	return d.awaitReady(ctx, id, exited)
}

// spawn starts executord detached: in its own session, with a log file for
// output, so that it outlives us. The channel is closed when it exits while we
// are still there.
func (d *Driver) spawn(id thole.ExecutorID, bwrap string, place *repository.Place) (<-chan struct{}, error) {
	l, err := d.label(id)
	if err != nil {
		return nil, err
	}
	if err := d.prepareOwn(id); err != nil {
		return nil, err
	}
	uid, err := d.user(id, bwrap != "")
	if err != nil {
		return nil, err
	}
	groups, err := d.cfg.Groups.make(id, l.Spec.Limits)
	if err != nil {
		return nil, err
	}
	tools := d.cfg.Tools().apartFrom(l.Spec.Files)
	name, args := d.open(l.Spec, groups)
	home := d.dir(id, "home")
	var into []*os.File
	given, err := d.handTools(id, l.Spec.Files, tools.User, bwrap != "")
	if err != nil {
		return nil, err
	}
	if bwrap != "" {
		trust, err := d.placeCA(id, tools.User)
		if err != nil {
			return nil, err
		}
		if into, err = doors(groups); err != nil {
			return nil, err
		}
		if name, args, err = d.boxed(l.Spec, place, bwrap, uid, tools, trust, sandbox.RefusesNested(context.Background(), bwrap), len(into)); err != nil {
			closeFiles(into)
			return nil, err
		}
		home = sandboxRun // nothing of the agent's is executord's
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = d.dir(id, "workspace")
	cmd.Env = append(environ(id, home, tools), given)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	closeAll, err := d.handOver(cmd, id, into)
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	closeAll()
	if err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // only to reap it; how it ended is in its log
	}()
	return exited, nil
}

// handOver gives a command its token, its socket, its log and the doors of its
// groups as descriptors. They are closed with the others.
func (d *Driver) handOver(cmd *exec.Cmd, id thole.ExecutorID, doors []*os.File) (closeAll func(), err error) {
	files := slices.Clone(doors)
	closeAll = func() { closeFiles(files) }
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	log, err := d.openLog(id)
	if err != nil {
		return nil, err
	}
	files = append(files, log)
	ln, err := d.listen(id)
	if err != nil {
		return nil, err
	}
	files = append(files, ln)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files = append(files, r)
	token, err := d.newToken(id)
	if err == nil {
		_, err = w.WriteString(token) // a pipe holds that much
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = r, log, log, append([]*os.File{ln}, doors...)
	return closeAll, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func environ(id thole.ExecutorID, home string, tools Tools) []string {
	env := []string{marker(id), "PATH=" + tools.path(), "LANG=C.UTF-8", "HOME=" + home}
	for k, v := range tools.Env {
		env = append(env, k+"="+v)
	}
	return env
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
