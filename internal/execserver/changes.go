//go:build linux

package execserver

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/protocol/exec"
)

const (
	// settle is how long changes are collected before they are reported.
	settle = 200 * time.Millisecond
	// maxChanged bounds one report: beyond it the watched path stands for all.
	maxChanged = 1000
)

const watchMask = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// changes are a connection's watches, on one inotify descriptor that the first makes.
// Directories are found by walking, as for every file call, and watched by descriptor:
// a link that an agent lays leads no watch out of the sandbox.
type changes struct {
	mu     sync.Mutex // guards the rest and every watch
	notify *os.File
	by     map[string]*pathWatch
	dirs   map[int][]dirWatch // by watch descriptor
	ended  bool
	wg     sync.WaitGroup
}

// pathWatch is one watched path. It is armed on the directory itself and on the nearest
// directory above that is there, so that it also sees the path appear and go.
type pathWatch struct {
	id, path string
	scope    scope
	in       func(func()) error // runs a look at the files in the sandbox
	was      bool               // the path was there
	wds      map[int]bool
	changed  map[string]bool
	timer    *time.Timer
	sending  bool // a report is on its way; the next one waits
}

// dirWatch is what one directory is watched for: all of its names, or whatever may
// change where the path leads.
type dirWatch struct {
	w   *pathWatch
	dir string
	all bool
}

func (c *conn) watchPath(raw json.RawMessage) (any, error) {
	var p exec.WatchParams
	if e := decode(raw, &p); e != nil {
		return nil, e
	}
	w := &pathWatch{id: p.WatchID, wds: map[int]bool{}, changed: map[string]bool{}}
	_, err := withPath(c, raw, &p, &p.Path, nil, &p.Sandbox, func(s scope, path string) (any, error) {
		w.scope, w.path = s, filepath.Clean(path)
		return nil, s.need(place{real: w.path}, sandbox.Read)
	})
	if err != nil {
		return nil, err
	}
	w.in = func(f func()) error { f(); return nil }
	if w.scope.policy.RestrictsFiles() {
		w.in = func(f func()) error { return sandbox.Confined(w.scope.policy, f) }
	}
	return exec.Empty{}, c.changes.add(c, w)
}

func (c *conn) unwatch(raw json.RawMessage) (any, error) {
	var p exec.UnwatchParams
	if e := decode(raw, &p); e != nil {
		return nil, e
	}
	c.changes.remove(p.WatchID)
	return exec.Empty{}, nil
}

func (ch *changes) add(c *conn, w *pathWatch) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	switch {
	case ch.ended:
		return unix.ECANCELED
	case ch.by[w.id] != nil:
		return inputError("watchId already exists: " + w.id)
	case len(ch.by) >= exec.MaxWatches:
		return inputError(fmt.Sprintf("at most %d paths may be watched", exec.MaxWatches))
	}
	if ch.notify == nil {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return err
		}
		ch.notify, ch.by, ch.dirs = os.NewFile(uintptr(fd), "inotify"), map[string]*pathWatch{}, map[int][]dirWatch{}
		ch.wg.Go(func() { ch.read(c) })
	}
	ch.by[w.id] = w
	if err := ch.arm(w); err != nil {
		ch.drop(w)
		return err
	}
	return nil
}

func (ch *changes) remove(id string) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if w := ch.by[id]; w != nil {
		ch.drop(w)
	}
}

// drop is called with mu held.
func (ch *changes) drop(w *pathWatch) {
	delete(ch.by, w.id)
	if w.timer != nil {
		w.timer.Stop()
	}
	ch.disarm(w, nil)
}

func (ch *changes) stop() {
	ch.mu.Lock()
	ch.ended = true
	for _, w := range ch.by {
		ch.drop(w)
	}
	notify := ch.notify
	ch.mu.Unlock()
	if notify != nil {
		notify.Close()
		ch.wg.Wait()
	}
}

// arm watches the path, if it is a directory, and the nearest directory above it that
// the sandbox shows. It is called with mu held.
func (ch *changes) arm(w *pathWatch) error {
	var armed error
	keep := map[int]bool{}
	err := w.in(func() {
		p, err := w.scope.locate(w.path, false)
		if err == nil {
			_, err = p.stat(true)
			p.close()
		}
		w.was = err == nil
		if wd, err := ch.watch(w, w.path); err == nil {
			keep[wd] = true
			ch.note(wd, dirWatch{w, w.path, true})
		}
		for dir := filepath.Dir(w.path); ; dir = filepath.Dir(dir) {
			wd, err := ch.watch(w, dir)
			if err == nil {
				keep[wd] = true
				ch.note(wd, dirWatch{w, dir, false})
			}
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) {
				armed = err
			}
			if err == nil || dir == "/" {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if armed == nil && len(keep) == 0 {
		armed = unix.ENOENT
	}
	ch.disarm(w, keep)
	return armed
}

// watch adds one directory.
func (ch *changes) watch(w *pathWatch, dir string) (wd int, err error) {
	p, err := w.scope.locate(dir, false)
	if err != nil {
		return 0, err
	}
	defer p.close()
	if err := w.scope.need(p, sandbox.Read); err != nil {
		return 0, err
	}
	f, err := p.open(unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = withFd(ch.notify, func(fd int) (err error) {
		wd, err = unix.InotifyAddWatch(fd, fmt.Sprint("/proc/self/fd/", f.Fd()), watchMask)
		return err
	})
	return wd, err
}

// withFd uses a descriptor that stays pollable.
func withFd(f *os.File, use func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var used error
	if err := raw.Control(func(fd uintptr) { used = use(int(fd)) }); err != nil {
		return err
	}
	return used
}

func (ch *changes) note(wd int, d dirWatch) {
	d.w.wds[wd] = true
	if !slices.Contains(ch.dirs[wd], d) {
		ch.dirs[wd] = append(ch.dirs[wd], d)
	}
}

// disarm ends a watch on directories but those to keep.
func (ch *changes) disarm(w *pathWatch, keep map[int]bool) {
	for wd := range w.wds {
		if keep[wd] {
			continue
		}
		delete(w.wds, wd)
		ch.dirs[wd] = slices.DeleteFunc(ch.dirs[wd], func(d dirWatch) bool { return d.w == w })
		if len(ch.dirs[wd]) == 0 {
			delete(ch.dirs, wd)
			_ = withFd(ch.notify, func(fd int) error {
				_, err := unix.InotifyRmWatch(fd, uint32(wd))
				return err
			})
		}
	}
}

func (ch *changes) read(c *conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := ch.notify.Read(buf)
		if err != nil {
			return
		}
		ch.mu.Lock()
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int(int32(binary.NativeEndian.Uint32(b))), binary.NativeEndian.Uint32(b[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			if end > len(b) {
				break
			}
			name := string(b[unix.SizeofInotifyEvent:end])
			for i := range name {
				if name[i] == 0 {
					name = name[:i]
					break
				}
			}
			ch.event(c, wd, mask, name)
			b = b[end:]
		}
		ch.mu.Unlock()
	}
}

// event is called with mu held.
func (ch *changes) event(c *conn, wd int, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 { // anything may have changed
		for _, w := range ch.by {
			ch.report(c, w, w.path)
		}
		return
	}
	for _, d := range ch.dirs[wd] {
		at := filepath.Join(d.dir, name)
		if !d.all && at != d.w.path {
			at = "" // perhaps a directory on the way
		}
		ch.report(c, d.w, at)
	}
	if mask&unix.IN_IGNORED != 0 { // the kernel's number is free
		for _, d := range ch.dirs[wd] {
			delete(d.w.wds, wd)
		}
		delete(ch.dirs, wd)
	}
}

// report collects a change; "" asks for another look at the path alone.
func (ch *changes) report(c *conn, w *pathWatch, path string) {
	if path != "" {
		w.changed[path] = true
	}
	if len(w.changed) > maxChanged {
		w.changed = map[string]bool{w.path: true}
	}
	if w.timer == nil && !w.sending {
		w.timer = time.AfterFunc(settle, func() { ch.flush(c, w) })
	}
}

// flush looks where the path leads now and sends what changed.
func (ch *changes) flush(c *conn, w *pathWatch) {
	ch.mu.Lock()
	w.timer = nil
	if ch.by[w.id] != w {
		ch.mu.Unlock()
		return
	}
	was := w.was
	if err := ch.arm(w); err != nil || w.was != was {
		w.changed[w.path] = true
	}
	paths := slices.Sorted(maps.Keys(w.changed))
	w.changed = map[string]bool{}
	if w.sending = len(paths) > 0; !w.sending {
		ch.mu.Unlock()
		return
	}
	ch.mu.Unlock()
	for i := range paths {
		paths[i] = exec.FormatURI(paths[i])
	}
	_ = c.rpc.Notify(c.rpc.Context(), exec.NotifyChanged, exec.ChangedParams{WatchID: w.id, Paths: paths})
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if w.sending = false; len(w.changed) > 0 && ch.by[w.id] == w {
		w.timer = time.AfterFunc(settle, func() { ch.flush(c, w) })
	}
}
