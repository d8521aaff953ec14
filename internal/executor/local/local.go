// Package local runs executors on this machine: a directory per executor and one
// detached executord in it, which outlives the process that started it. In its box
// the agent sees its files at /workspace, its own process tree and nothing else of
// the machine's files that it could change, and on the host it is never root.
// Without a box, where a person typed so, it has the same directory under its real
// path, which is why that path never changes for the executor's life.
//
// What exists is found by label: a spec file written before anything else, and a
// marker in the environment of every process.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/toolchain"
	"golang.org/x/sync/errgroup"
)

// Config makes a Driver.
type Config struct {
	// Root holds one directory per executor. It lies in Home, which no agent is shown;
	// default Root.
	Root, Home string
	// Binary is the thole program that serves as executord.
	Binary string
	// Tools says what the agents need besides the system, asked at every start.
	Tools func() Tools
	// Bwrap is bubblewrap's path. Without it Box finds it at every start, or says why
	// there is none: then nothing starts. With neither agents run without walls, which
	// is only for whom a person typed it.
	Bwrap string
	Box   func(context.Context) (string, error)
	// Note is said in every turn.
	Note string
	// UIDBase begins the users that agents of a server run as which is root, default
	// DefaultUIDBase.
	UIDBase int
	// Egress is what agents reach over the network, CA a file with certificates that
	// they trust besides the system's.
	Egress wire.Egress
	CA     string
	// Gateway is the socket of the model gateway, alone in its directory, which is shown to
	// executord and never to an agent; "": there is no gateway.
	Gateway string
	// Groups is where limits are enforced; without it they are not.
	Groups Groups
	// SetupTimeout bounds the setup of a workspace, default executord's.
	SetupTimeout time.Duration
	// StartTimeout bounds the wait for executord, default 20 s.
	StartTimeout time.Duration
	Now          func() time.Time
}

// Tools is what agents need besides the system.
type Tools struct {
	// Readable are files and directories to show read-only: the CLI binaries above
	// all, by the paths to which their links lead.
	Readable []string
	// Paths are what a person shows to agents: toolchains. They are looked at before
	// each start, and one that holds keys keeps the executor from starting.
	Paths []string
	// User is what of the user's own shell agents have.
	User toolchain.Plan
	// Env is passed to executord besides the fixed part.
	Env map[string]string
}

// Driver implements executor.Driver and executor.Files.
type Driver struct {
	cfg Config
	mu  sync.Mutex // held while a user is chosen
}

var (
	_ executor.Driver  = (*Driver)(nil)
	_ executor.Files   = (*Driver)(nil)
	_ executor.Memory  = (*Driver)(nil)
	_ executor.InPlace = (*Driver)(nil)
)

// New makes a driver.
func New(cfg Config) *Driver {
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = 20 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Home == "" {
		cfg.Home = cfg.Root
	}
	if cfg.UIDBase == 0 {
		cfg.UIDBase = DefaultUIDBase
	}
	if cfg.Tools == nil {
		cfg.Tools = func() Tools { return Tools{} }
	}
	return &Driver{cfg: cfg}
}

// Name implements executor.Driver.
func (d *Driver) Name() string { return "local" }

// maxRoot keeps the socket's path below the kernel's limit of 108 bytes.
const maxRoot = 108 - len("/00000000-0000-0000-0000-000000000000/own/d.sock") - 1

// Check implements executor.Driver.
func (d *Driver) Check(ctx context.Context) error {
	if err := CheckPlatform(); err != nil {
		return err
	}
	if err := CheckRoot(d.cfg.Root); err != nil {
		return err
	}
	_, err := d.box(ctx)
	return err
}

// CheckRoot refuses a directory in which no executor could have its socket.
func CheckRoot(root string) error {
	if len(root) > maxRoot {
		return thole.Errorf(thole.CodeInvalid, "executor directory %s is longer than %d bytes, too long for a socket", root, maxRoot).
			WithHint("choose a shorter --home")
	}
	return nil
}

// label is what spec.json holds.
type label struct {
	Spec    executor.Spec
	Created time.Time
	UID     int `json:",omitempty"` // whom its agents run as, where the server is root
	// At is the directory of the user as it was when the executor last started.
	At identity `json:",omitzero"`
}

func (d *Driver) dir(id thole.ExecutorID, elem ...string) string {
	return filepath.Join(append([]string{d.cfg.Root, string(id)}, elem...)...)
}

// Create implements executor.Driver.
func (d *Driver) Create(_ context.Context, spec executor.Spec) error {
	if err := CheckPlatform(); err != nil {
		return err
	}
	if !thole.ValidUUID(string(spec.ID)) {
		return thole.Errorf(thole.CodeInvalid, "executor id %q is not a UUID", spec.ID)
	}
	if _, err := d.label(spec.ID); err == nil {
		return nil
	} else if !errors.Is(err, executor.ErrNotFound) {
		return err
	}
	data, err := json.Marshal(label{Spec: spec, Created: d.cfg.Now()})
	if err != nil {
		return err
	}
	if err := d.build(spec.ID, data); err != nil {
		return fmt.Errorf("create executor: %w", err)
	}
	return nil
}

// build makes the directories next to their place and moves them there with their
// label: a caller that lists finds all of it or nothing.
func (d *Driver) build(id thole.ExecutorID, label []byte) error {
	half := d.dir(id) + ".new"
	for _, left := range []string{half, d.dir(id)} { // by a crash
		if err := os.RemoveAll(left); err != nil {
			return err
		}
	}
	for _, sub := range shared {
		if err := os.MkdirAll(filepath.Join(half, sub), 0o700); err != nil {
			return err
		}
	}
	if err := atomicfile.Write(filepath.Join(half, "spec.json"), label, 0o600); err != nil {
		return err
	}
	return os.Rename(half, d.dir(id))
}

func (d *Driver) label(id thole.ExecutorID) (label, error) {
	var l label
	data, err := os.ReadFile(d.dir(id, "spec.json"))
	if errors.Is(err, os.ErrNotExist) {
		return l, executor.ErrNotFound
	}
	if err != nil {
		return l, err
	}
	return l, strictjson.Unmarshal(data, &l)
}

// WorkspaceDir implements executor.Files.
func (d *Driver) WorkspaceDir(id thole.ExecutorID) (string, error) {
	l, err := d.label(id)
	if err != nil || l.Spec.Files.InPlace() {
		return "", err
	}
	return d.dir(id, "workspace"), nil
}

// DataDir implements executor.Files.
func (d *Driver) DataDir(id thole.ExecutorID) (string, error) {
	if _, err := d.label(id); err != nil {
		return "", err
	}
	if _, err := os.Lstat(d.dir(id, "data")); errors.Is(err, os.ErrNotExist) {
		return "", nil // of an earlier version
	} else if err != nil {
		return "", err
	}
	return d.dir(id, "data"), nil
}

// Starved implements executor.Memory.
func (d *Driver) Starved(id thole.ExecutorID) int { return d.cfg.Groups.starved(id) }

// Inspect implements executor.Driver. Running means that executord answers; where
// nobody listens any more it is dead, and processes that outlived it are strays
// for Stop and Start.
func (d *Driver) Inspect(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	l, err := d.label(id)
	if errors.Is(err, executor.ErrNotFound) {
		return executor.Info{ID: id, State: executor.Missing}, nil
	}
	if err != nil {
		return executor.Info{}, err
	}
	info := executor.Info{ID: id, Thread: l.Spec.Thread, Created: l.Created, State: executor.Stopped}
	got, unreached := d.reach(ctx, info)
	if unreached == nil {
		return got, nil
	}
	found, err := process.Marked(marker(id))
	if err != nil {
		return executor.Info{}, fmt.Errorf("look for executor processes: %w", err)
	}
	if len(found) == 0 || errors.Is(unreached, syscall.ECONNREFUSED) || errors.Is(unreached, os.ErrNotExist) {
		return info, nil
	}
	return got, unreached
}

// reach fills in how to talk to a running executord.
func (d *Driver) reach(ctx context.Context, info executor.Info) (executor.Info, error) {
	token, err := d.token(info.ID)
	if err != nil {
		return info, fmt.Errorf("read executor token: %w", err)
	}
	info.Endpoint, info.Token = "unix:"+d.dir(info.ID, own, "d.sock"), token
	client := executorclient.Dial(info.Endpoint, info.Token)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := client.Status(ctx)
	if err != nil {
		return info, fmt.Errorf("executor %s has processes but does not answer: %w", info.ID, err)
	}
	info.State, info.Boot, info.Gateway, info.Old = executor.Running, status.Boot, status.Gateway, status.Revision < wire.Revision
	return info, nil
}

// lookers is how many executors List asks at a time.
const lookers = 32

// List implements executor.Driver.
func (d *Driver) List(ctx context.Context) ([]executor.Info, error) {
	process.SweepGroups(process.OwnGroup()) // of executords that were killed
	entries, err := os.ReadDir(d.cfg.Root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list executors: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !thole.ValidUUID(e.Name()) })
	// Side by side: those that hang must not add up.
	all := make([]executor.Info, len(entries))
	var looks errgroup.Group
	looks.SetLimit(lookers)
	for i, e := range entries {
		looks.Go(func() error {
			id := thole.ExecutorID(e.Name())
			info, err := d.Inspect(ctx, id)
			if err != nil {
				// It exists and does not answer: report it as running, so that nobody
				// takes it for stopped or gone.
				info.ID, info.State = id, executor.Running
			}
			all[i] = info
			return nil
		})
	}
	_ = looks.Wait()
	var out []executor.Info
	for i, info := range all {
		id := thole.ExecutorID(entries[i].Name())
		if info.State == executor.Missing {
			// A crash in the middle of its removal took the files first. If there are some,
			// another process did, and they are not ours to delete.
			files, _ := os.ReadDir(d.dir(id, "workspace"))
			if data, _ := os.ReadDir(d.dir(id, "data")); len(files)+len(data) == 0 {
				if err := os.RemoveAll(d.dir(id)); err != nil {
					return nil, err
				}
			}
			continue
		}
		out = append(out, info)
	}
	return out, nil
}
