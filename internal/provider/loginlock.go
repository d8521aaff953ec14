package provider

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A lock of a CLI's counts as left behind when nobody touched it for stale.
const (
	stale = time.Minute
	touch = 2 * time.Second
	retry = 50 * time.Millisecond
)

// hold keeps other programs from renewing the same login: those of thole by a lock
// on its directory, which leaves nothing behind, and a CLI that has locks by those:
// directories that it makes in turn, and touches while it holds them.
func hold(ctx context.Context, path string, own bool) (release func(), err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if err := until(ctx, func() error { return syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }, syscall.EWOULDBLOCK); err != nil {
		dir.Close()
		return nil, err
	}
	var held []string
	done := make(chan struct{})
	var touched sync.WaitGroup
	release = func() {
		close(done)
		touched.Wait()
		for _, lock := range held {
			os.Remove(lock)
		}
		dir.Close()
	}
	if !own {
		return release, nil
	}
	for _, lock := range []string{filepath.Join(dir.Name(), ".oauth_refresh.lock"), dir.Name() + ".lock"} {
		if err := until(ctx, func() error { return lockDir(lock) }, fs.ErrExist); err != nil {
			release()
			return nil, err
		}
		held = append(held, lock)
	}
	touched.Go(func() {
		tick := time.NewTicker(touch)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				for _, lock := range held {
					_ = os.Chtimes(lock, now, now)
				}
			}
		}
	})
	return release, nil
}

// lockDir makes the directory that is the lock, in the place of one left behind.
func lockDir(lock string) error {
	err := os.Mkdir(lock, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if fi, stat := os.Stat(lock); stat == nil && time.Since(fi.ModTime()) > stale {
		_ = os.Remove(lock)
	}
	return err
}

// until tries again while another has it.
func until(ctx context.Context, try func() error, taken error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, renewTimeout, errors.New("another program holds the login"))
	defer cancel()
	for {
		err := try()
		if !errors.Is(err, taken) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retry):
		}
	}
}
