// Package side is the end of a workspace that is near the files: it lays layers,
// links the agent CLIs' data, checks what the manifest requires, scans, and moves
// bytes by links. It never decides what a snapshot is. Nothing here follows a
// symbolic link, and nothing is read or written outside the workspace.
package side

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Config places a Local.
type Config struct {
	Dir string // the workspace; "" has no files but those of Data
	// Data is where the tree's directory of conversations really is. "" means in the
	// workspace, as in a stopped executor of an earlier version.
	Data string
	// State keeps the index and what waits to be pushed, outside the workspace. ""
	// means a temporary directory and no index.
	State string
	Home  string // where data directories of CLIs are linked
	// Shown is what people look at and write in, "" for the tree itself.
	Shown string
	// Client moves objects; nil makes one.
	Client *http.Client
	// Patience is how long a transfer may stand still, default 1 min.
	Patience time.Duration
	Now      func() time.Time
}

// Local is the Side on the machine that has the files. Calls take turns.
type Local struct {
	cfg Config

	writes sync.Mutex // held while a person's file is replaced; never with mu

	mu     sync.Mutex // guards what follows, and is held for the length of a call
	index  *index
	staged *stage
}

var _ workspace.Side = (*Local)(nil)

// New makes a Local; it touches nothing.
func New(cfg Config) *Local {
	if cfg.Client == nil {
		cfg.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: transfers, DisableCompression: true, IdleConnTimeout: 30 * time.Second}}
	}
	if cfg.Patience == 0 {
		cfg.Patience = time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Local{cfg: cfg}
}

// root opens the tree: the workspace, and the conversations under their name.
func (l *Local) root() (*beneath.Dir, error) {
	d, err := l.open()
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open workspace: %w", err)
	}
	return d, nil
}

func (l *Local) open() (*beneath.Dir, error) {
	if l.cfg.Data == "" {
		return beneath.Trusted(l.cfg.Dir)
	}
	data, err := beneath.Trusted(l.cfg.Data)
	if err != nil {
		return nil, err
	}
	var d *beneath.Dir
	if l.cfg.Dir == "" {
		d, err = beneath.Nowhere()
	} else {
		d, err = beneath.Trusted(l.cfg.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	d.Graft(workspace.AgentData, workspace.OwnAgentData, data)
	return d, nil
}

// has reports whether a path can be in the tree. What cannot is left out of a restore
// and not asked for.
func (l *Local) has(path string) bool {
	return l.cfg.Dir != "" || beneath.Within(path, workspace.AgentData)
}

// real is a path of the tree as programs find it.
func (l *Local) real(path string) string {
	if rest, ok := strings.CutPrefix(path, workspace.AgentData+"/"); ok && l.cfg.Data != "" {
		return filepath.Join(l.cfg.Data, filepath.FromSlash(rest))
	}
	return filepath.Join(l.cfg.Dir, filepath.FromSlash(path))
}

// Close drops what waits to be pushed and idle connections.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg.Client.CloseIdleConnections()
	return l.dropStage()
}

// transfers is how many objects move at once.
const transfers = 4

// stage is a scan's outcome on its way to the store.
type stage struct {
	dir     string
	tree    objects.Sum
	encoded []byte
	sources map[string]source
}

// source is where an object's bytes are until they are pushed.
type source struct {
	object workspace.Object
	staged string          // a file in the stage, or
	path   string          // a file in the workspace, which may still change
	data   beneath.Extents // of the latter
}

func (l *Local) dropStage() error {
	if l.staged == nil {
		return nil
	}
	dir := l.staged.dir
	l.staged = nil
	return os.RemoveAll(dir)
}

func (l *Local) newStage() (*stage, error) {
	if err := l.dropStage(); err != nil {
		return nil, err
	}
	if l.cfg.State == "" {
		dir, err := os.MkdirTemp("", "thole-sync-")
		return &stage{dir: dir, sources: map[string]source{}}, err
	}
	dir := filepath.Join(l.cfg.State, "stage")
	err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
	return &stage{dir: dir, sources: map[string]source{}}, err
}

// base returns the index of a tree, or the bare tree when there is none.
func (l *Local) base(ctx context.Context, link *workspace.TreeLink) (*index, error) {
	if link == nil {
		return nil, nil
	}
	if l.index != nil && l.index.name == link.Sum {
		return l.index, nil
	}
	if l.cfg.State != "" {
		if x := loadIndex(l.cfg.State, link.Sum); x != nil {
			return x, nil
		}
	}
	t, err := l.fetchTree(ctx, *link)
	if thole.CodeOf(err) == thole.CodeInvalid {
		return nil, nil // no scan made it, so it saves no work: all is stored again
	}
	if err != nil {
		return nil, err
	}
	return newIndex(t, link.Sum, nil), nil
}

func (l *Local) fetchTree(ctx context.Context, link workspace.TreeLink) (*workspace.Tree, error) {
	var data []byte
	err := l.get(ctx, link.Link, 0, -1, func(r io.Reader) (err error) {
		data, err = io.ReadAll(io.LimitReader(r, workspace.MaxTree))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	if objects.SumOf(data) != link.Sum {
		return nil, thole.Errorf(thole.CodeInternal, "stored tree %s is damaged", link.Sum)
	}
	return workspace.DecodeTree(data)
}
