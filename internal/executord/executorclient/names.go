package executorclient

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/protocol/exec"
)

// Bounds of a listing.
const (
	maxListing     = 8 << 20 // bytes of names
	maxWalk        = 50_000  // names below a directory that is in no repository
	maxDirectories = 10_000  // directories among them
	maxDepth       = 64
	listing        = "1" // what the exec-server calls the one program of the session
)

// Name is a file or directory of a workspace, by its path below what was listed.
type Name struct {
	Path string
	Dir  bool
}

// Notify gets the notifications of a session.
type Notify = func(method string, params json.RawMessage)

// Opener opens a session with an executor; done ends it.
type Opener = func(ctx context.Context, on Notify) (x *Exec, done func(), err error)

// Confined is the sandbox of file calls: the workspace, whatever links in it say. What the
// exec-server keeps read-only for agents by its name alone is the user's to change.
func Confined(root string) *exec.Sandbox {
	if unguarded.Build {
		return nil
	}
	entry := func(path string) exec.FSEntry {
		return exec.FSEntry{Path: exec.FSPath{Type: exec.FSPathPath, Path: exec.FormatURI(path)}, Access: exec.AccessWrite}
	}
	entries := []exec.FSEntry{entry(root)}
	for _, name := range sandbox.Protected {
		entries = append(entries, entry(filepath.Join(root, name)))
	}
	return &exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{
		Type: exec.PermissionsManaged, Network: exec.NetworkRestricted, FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: entries},
	}}
}

// listFiles prints the files of a repository that git does not ignore, and after an empty
// name those that are gone. git itself decides what is ignored, in the executor.
const listFiles = `git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 3
git -c core.fsmonitor=false ls-files -z --cached --others --exclude-standard --deduplicate && printf '\0' && git -c core.fsmonitor=false ls-files -z --deleted`

// Names lists a directory of the workspace at root: in a repository what git does not
// ignore, elsewhere everything. Links are names like others and are not followed.
func Names(ctx context.Context, open Opener, root, dir string) ([]Name, error) {
	names, exit, err := capture(ctx, open, dir, []string{"sh", "-c", listFiles})
	if err != nil {
		return nil, err
	}
	if exit == 3 {
		return walk(ctx, open, root, dir)
	}
	there, gone, _ := strings.Cut(string(names), "\x00\x00")
	missing := map[string]bool{}
	for name := range strings.SplitSeq(gone, "\x00") {
		missing[name] = true
	}
	var all []Name
	dirs := map[string]bool{"": true, ".": true}
	for name := range strings.SplitSeq(there, "\x00") {
		if name == "" || missing[name] {
			continue
		}
		all = append(all, Name{strings.TrimSuffix(name, "/"), strings.HasSuffix(name, "/")}) // with a slash: a repository inside
		for dir := path.Dir(strings.TrimSuffix(name, "/")); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
			all = append(all, Name{dir, true})
		}
	}
	return all, nil
}

// walk lists a directory that is in no repository.
func walk(ctx context.Context, open Opener, root, dir string) (all []Name, err error) {
	x, done, err := open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer done()
	var tree exec.WalkResult
	options := exec.WalkOptions{MaxDepth: maxDepth, MaxDirectories: maxDirectories, MaxEntries: maxWalk}
	if err := x.Call(ctx, exec.MethodWalk, exec.WalkParams{Path: exec.FormatURI(dir), Options: options, Sandbox: Confined(root)}, &tree); err != nil {
		return nil, err
	}
	for _, e := range tree.Entries {
		if p, err := exec.ParseURI(e.Path); err == nil && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") {
			all = append(all, Name{strings.TrimPrefix(strings.TrimPrefix(p, dir), "/"), e.Kind == "directory"})
		}
	}
	return all, nil
}

// capture runs a program of thole's in an executor and returns what it printed, up to a
// bound.
func capture(ctx context.Context, open Opener, dir string, argv []string) (out []byte, exit int, err error) {
	ended := make(chan struct{})
	x, done, err := open(ctx, func(method string, raw json.RawMessage) {
		switch method {
		case exec.NotifyOutput:
			var p exec.OutputParams
			if strictjson.Unmarshal(raw, &p) == nil && p.Stream == exec.StreamStdout {
				out = append(out, p.Chunk[:min(len(p.Chunk), maxListing-len(out))]...)
			}
		case exec.NotifyExited:
			var p exec.ExitedParams
			if strictjson.Unmarshal(raw, &p) == nil {
				exit = p.ExitCode
			}
		case exec.NotifyClosed:
			select {
			case <-ended:
			default:
				close(ended)
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	defer func() { done() }()
	err = x.Call(ctx, exec.MethodProcessStart, exec.StartParams{
		ProcessID: listing, Argv: argv, Cwd: exec.FormatURI(dir), Env: map[string]string{},
		EnvPolicy: &exec.EnvPolicy{Inherit: "all", IgnoreDefaultExcludes: true, Exclude: []string{}, Set: map[string]string{}, IncludeOnly: []string{}},
	}, nil)
	if err != nil {
		return nil, 0, err
	}
	select {
	case <-ended:
		return out, exit, nil
	case <-x.Done():
		return nil, 0, thole.Errorf(thole.CodeUnavailable, "the executor has ended")
	case <-ctx.Done():
		x.Send(exec.MethodProcessTerminate, exec.ProcessParams{ProcessID: listing})
		return nil, 0, context.Cause(ctx)
	}
}
