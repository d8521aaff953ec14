//go:build linux

package execserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/tholehq/thole/protocol/exec"
)

// maxWatched bounds the paths of one watch.
const maxWatched = 4096

// missingWatch is a connection's one watch for paths to appear. It fires once.
type missingWatch struct {
	mu      sync.Mutex // guards the rest
	id      uint64     // highest seen
	watcher *fsnotify.Watcher
}

// stop ends the current watch.
func (w *missingWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked()
}

func (w *missingWatch) stopLocked() {
	if w.watcher != nil {
		w.watcher.Close()
		w.watcher = nil
	}
}

func (c *conn) watchMissing(raw json.RawMessage) (any, error) {
	var p exec.WatchMissingParams
	if e := decode(raw, &p); e != nil {
		return nil, e
	}
	t := watched{}
	for _, uri := range p.Missing {
		path, err := nativePath(uri)
		if err != nil {
			return nil, err
		}
		t.missing = append(t.missing, path)
	}
	if p.Present != nil {
		path, err := nativePath(*p.Present)
		if err != nil {
			return nil, err
		}
		t.present = path
	}
	return exec.WatchMissingResult{Watching: c.watch.replace(c, p.WatchID, t)}, nil
}

// watched are the paths of one watch.
type watched struct {
	missing []string
	present string
}

// replace starts a watch in place of the older one; an older id changes nothing.
func (w *missingWatch) replace(c *conn, id uint64, t watched) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id <= w.id && w.id != 0 {
		return false
	}
	w.id = id
	w.stopLocked()
	if len(t.missing) == 0 || len(t.missing) > maxWatched || c.rpc.Err() != nil {
		return false
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return false
	}
	t.arm(watcher)
	if t.changed() { // checked after arming, so nothing falls between
		watcher.Close()
		return false
	}
	w.watcher = watcher
	c.wg.Go(func() {
		for {
			select {
			case _, ok := <-watcher.Events:
				if !ok {
					return
				}
			case _, ok := <-watcher.Errors:
				if !ok {
					return
				}
			}
			t.arm(watcher)
			if t.changed() {
				watcher.Close()
				_ = c.rpc.Notify(c.rpc.Context(), exec.NotifyMissingChanged, exec.MissingChangedParams{WatchID: id})
				return
			}
		}
	})
	return true
}

// arm watches the nearest existing directory above every path; as directories
// appear the watch moves down.
func (t *watched) arm(w *fsnotify.Watcher) {
	for _, path := range t.missing {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if w.Add(dir) == nil || dir == "/" {
				break
			}
		}
	}
	if t.present != "" {
		_ = w.Add(filepath.Dir(t.present))
	}
}

func (t *watched) changed() bool {
	for _, path := range t.missing {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	if t.present != "" {
		if _, err := os.Lstat(t.present); err != nil {
			return true
		}
	}
	return false
}
