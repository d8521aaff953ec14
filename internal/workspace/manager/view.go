package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// View is a snapshot as files: for people who look at a workspace whose executor
// does not run. It does not change; the snapshot is held by the grace period of
// collection.
type View struct {
	Snapshot workspace.Snapshot
	refs     []workspace.Ref
	get      getter
	tree     *workspace.Tree
	at       map[string]int

	mu    sync.Mutex // guards what follows
	packs []pack
}

// getter reads n bytes of an object from off, with n < 0 all that follow.
type getter func(ctx context.Context, id string, off, n int64) (io.ReadCloser, error)

// linked reads objects by links.
func linked(req workspace.ExportRequest) getter {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	return func(ctx context.Context, id string, off, n int64) (io.ReadCloser, error) {
		link, ok := req.Links[id]
		if !ok {
			return nil, thole.Errorf(thole.CodeInvalid, "the tree names object %.80q, which the snapshot does not have", id)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, link.URL, nil)
		if err != nil {
			return nil, err
		}
		for k, v := range link.Headers {
			r.Header.Set(k, v)
		}
		want := http.StatusOK
		if n >= 0 {
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+n-1))
			want = http.StatusPartialContent
		}
		resp, err := client.Do(r)
		if err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "read object: %w", errors.Unwrap(err)) // without the link
		}
		if resp.StatusCode != want {
			return nil, errors.Join(thole.Errorf(thole.CodeUnavailable, "object store answered %s", resp.Status), resp.Body.Close())
		}
		return resp.Body, nil
	}
}

// View opens the snapshot a thread is at.
func (m *Manager) View(ctx context.Context, id thole.ThreadID) (*View, error) {
	s, refs, err := m.cfg.Rows.Head(ctx, id)
	if err != nil {
		return nil, err
	}
	v := m.view(s, refs)
	return v, v.read(ctx)
}

// ViewSnapshot opens one snapshot.
func (m *Manager) ViewSnapshot(ctx context.Context, id workspace.SnapshotID) (*View, error) {
	s, refs, err := m.cfg.Rows.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	v := m.view(s, refs)
	return v, v.read(ctx)
}

func (m *Manager) view(s workspace.Snapshot, refs []workspace.Ref) *View {
	keys := make(map[string]string, len(refs))
	for _, r := range refs {
		keys[r.ID] = r.Key
	}
	return &View{Snapshot: s, refs: refs, get: func(ctx context.Context, id string, off, n int64) (io.ReadCloser, error) {
		return m.cfg.Objects.Get(ctx, keys[id], off, n)
	}}
}

// read reads the tree.
func (v *View) read(ctx context.Context) error {
	body, err := v.get(ctx, treeRef(v.Snapshot.Tree), 0, -1)
	if err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, workspace.MaxTree))
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "read tree: %w", err)
	}
	if objects.SumOf(data) != v.Snapshot.Tree {
		return thole.Errorf(thole.CodeInternal, "the stored tree of snapshot %s is damaged", v.Snapshot.ID)
	}
	if v.tree, err = workspace.DecodeTree(data); err != nil {
		return err
	}
	v.at = make(map[string]int, len(v.tree.Entries))
	for i, e := range v.tree.Entries {
		v.at[e.Path] = i
	}
	return nil
}

func (v *View) info(e workspace.Entry) workspace.FileInfo {
	f := workspace.Describe(e.Path, beneath.Stat{Kind: e.Kind, Mode: e.Mode, Size: e.Size, Mtime: e.Mtime})
	f.ETag = `"` + e.Sum.String() + `"`
	if e.Kind != beneath.File {
		f.ETag = ""
	}
	if e.Mtime == 0 {
		f.Modified = time.Time{} // links have none, nor have directories of older trees
	}
	f.Link = e.Link
	return f
}

// List describes what lies directly in a directory; "" is the workspace.
func (v *View) List(path string) (workspace.TreeListing, error) {
	prefix := ""
	if path != "" {
		e, err := v.entry(path)
		if err != nil {
			return workspace.TreeListing{}, err
		}
		if e.Kind != beneath.Folder {
			return workspace.TreeListing{}, thole.Errorf(thole.CodeInvalid, "%q is not a directory", path)
		}
		prefix = path + "/"
	}
	out := workspace.TreeListing{Entries: []workspace.FileInfo{}}
	for _, e := range v.tree.Entries {
		rest, ok := strings.CutPrefix(e.Path, prefix)
		if !ok || rest == "" || strings.Contains(rest, "/") {
			continue
		}
		if len(out.Entries) == workspace.MaxListing {
			out.Truncated = true
			break
		}
		out.Entries = append(out.Entries, v.info(e))
	}
	return out, nil
}

func (v *View) entry(path string) (workspace.Entry, error) {
	i, ok := v.at[path]
	if !ok {
		return workspace.Entry{}, thole.Errorf(thole.CodeNotFound, "there is no %q", path)
	}
	return v.tree.Entries[i], nil
}

// Stat describes one name. Links are not followed.
func (v *View) Stat(path string) (workspace.FileInfo, error) {
	e, err := v.entry(path)
	if err != nil {
		return workspace.FileInfo{}, err
	}
	return v.info(e), nil
}

// Open reads n bytes of a file from off, with n < 0 all that follow.
func (v *View) Open(ctx context.Context, path string, off, n int64) (io.ReadCloser, workspace.FileInfo, error) {
	e, err := v.entry(path)
	if err != nil {
		return nil, workspace.FileInfo{}, err
	}
	info := v.info(e)
	if e.Kind != beneath.File || e.Unsettled && !e.Known {
		return nil, info, thole.Errorf(thole.CodeInvalid, "%q is not a stored file", path)
	}
	if n < 0 {
		n = e.Size - off
	}
	if off < 0 || n < 0 || off > e.Size-n {
		return nil, info, thole.Errorf(thole.CodeInvalid, "%q has %d bytes, not %d+%d", path, e.Size, off, n)
	}
	if n == 0 {
		return io.NopCloser(strings.NewReader("")), info, nil
	}
	body, err := e.Data.Whole(off, n, func(off, n int64) (io.ReadCloser, error) { return v.stored(ctx, e, off, n) })
	return body, info, err
}

// stored reads what is stored of a file. A compressed pack is read whole, once for
// files of it that are read one after the other.
func (v *View) stored(ctx context.Context, e workspace.Entry, off, n int64) (io.ReadCloser, error) {
	o := v.tree.Objects[e.Object]
	if o.Plain == 0 {
		return v.get(ctx, o.ID, e.Offset+off, n)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.packs, func(p pack) bool { return p.id == o.ID })
	if i < 0 {
		body, err := v.get(ctx, o.ID, 0, -1)
		if err != nil {
			return nil, err
		}
		defer body.Close()
		data, err := io.ReadAll(io.LimitReader(body, o.Size+1))
		if err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "read pack: %w", err)
		}
		if data, err = o.Expand(data); err != nil {
			return nil, err
		}
		if len(v.packs) == packsKept {
			v.packs = v.packs[1:]
		}
		i, v.packs = len(v.packs), append(v.packs, pack{o.ID, data})
	}
	return io.NopCloser(bytes.NewReader(v.packs[i].plain[e.Offset+off:][:n])), nil
}

// pack is a pack that was read last, packsKept how many a view keeps.
type pack struct {
	id    string
	plain []byte
}

const packsKept = 3
