package side

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// maxDepth is how deep a listing goes.
const maxDepth = 64

// at opens the directory and the name that a request's path means. The empty path
// is the workspace, with an empty name.
func (l *Local) at(path string) (dir *beneath.Dir, name string, err error) {
	root, err := l.shown()
	if err != nil {
		return nil, "", err
	}
	if path == "" {
		return root, "", nil
	}
	defer root.Close()
	dir, name, err = root.Parent(path, false)
	return dir, name, fileError(path, err)
}

func (l *Local) shown() (*beneath.Dir, error) {
	if l.cfg.Shown == "" {
		return l.root()
	}
	d, err := beneath.Open(l.cfg.Shown)
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "open the thread's directory: %w", err)
	}
	return d, nil
}

func fileError(path string, err error) error {
	switch {
	case err == nil, thole.CodeOf(err) == thole.CodeInvalid:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return thole.Errorf(thole.CodeNotFound, "there is no %q", path)
	case gone(err):
		return thole.Errorf(thole.CodeForbidden, "%q is no file or directory, or leads through a link", path)
	case errors.Is(err, fs.ErrPermission):
		return thole.Errorf(thole.CodeForbidden, "%q: %w", path, err)
	}
	return err
}

// List describes a directory down to depth levels, names in order.
func (l *Local) List(path string, depth int) (workspace.TreeListing, error) {
	dir, name, err := l.at(path)
	if err != nil {
		return workspace.TreeListing{}, err
	}
	defer func() { dir.Close() }()
	prefix := ""
	if name != "" {
		sub, err := dir.Sub(name)
		if err != nil {
			return workspace.TreeListing{}, fileError(path, err)
		}
		dir.Close()
		dir, prefix = sub, path+"/"
	}
	out := workspace.TreeListing{Entries: []workspace.FileInfo{}}
	return out, addTo(&out, dir, prefix, min(depth, maxDepth))
}

func addTo(t *workspace.TreeListing, dir *beneath.Dir, prefix string, depth int) error {
	names, err := dir.Names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if len(t.Entries) == workspace.MaxListing {
			t.Truncated = true
			return nil
		}
		st, err := dir.Lstat(name)
		if err != nil {
			continue
		}
		info := workspace.Describe(prefix+name, st)
		if st.Kind == beneath.Link {
			info.Link, _ = dir.Readlink(name)
		}
		t.Entries = append(t.Entries, info)
		if st.Kind != beneath.Folder || depth <= 1 {
			continue
		}
		sub, err := dir.Sub(name)
		if err != nil {
			continue
		}
		err = addTo(t, sub, prefix+name+"/", depth-1)
		sub.Close()
		if err != nil || t.Truncated {
			return err
		}
	}
	return nil
}

func (l *Local) serveTree(w http.ResponseWriter, r *http.Request) {
	depth := 1
	if d := r.URL.Query().Get("depth"); d != "" {
		n, err := strconv.Atoi(d)
		if err != nil || n < 1 {
			jsonhttp.Error(w, thole.Errorf(thole.CodeInvalid, "depth %q is not a positive number", d))
			return
		}
		depth = n
	}
	out, err := l.List(r.URL.Query().Get("path"), depth)
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (l *Local) serveFile(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	dir, name, err := l.at(path)
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	defer dir.Close()
	if name == "" {
		jsonhttp.Error(w, thole.Errorf(thole.CodeInvalid, "say which file"))
		return
	}
	f, err := dir.Open(name)
	if err != nil {
		jsonhttp.Error(w, fileError(path, err))
		return
	}
	defer f.Close()
	st, err := beneath.StatFile(f)
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	w.Header().Set("ETag", workspace.ETagOf(st))
	safeContent(w)
	http.ServeContent(w, r, "", time.Unix(0, st.Mtime), f)
}

// safeContent keeps a browser from running what an agent wrote.
func safeContent(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "sandbox")
}

// writeFile replaces a file, or makes one, with the body: whole or not at all.
// If-Match and If-None-Match refuse what the caller did not expect to replace.
func (l *Local) writeFile(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	dir, name, err := l.at(path)
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	defer dir.Close()
	if name == "" {
		jsonhttp.Error(w, thole.Errorf(thole.CodeInvalid, "say which file"))
		return
	}
	if _, err := replaceable(dir, name, path, r.Header); err != nil {
		jsonhttp.Error(w, err)
		return
	}
	st, err := l.replace(dir, name, path, r)
	if err != nil {
		jsonhttp.Error(w, fileError(path, err))
		return
	}
	w.Header().Set("ETag", workspace.ETagOf(st))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(workspace.Describe(path, st))
}

// replaceable returns the mode that a file is to have, if the caller expects what
// is there.
func replaceable(dir *beneath.Dir, name, path string, h http.Header) (mode uint32, err error) {
	mode = 0o644
	have := ""
	switch st, err := dir.Lstat(name); {
	case err == nil && st.Kind != beneath.File:
		return 0, thole.Errorf(thole.CodeForbidden, "%q is not a file", path)
	case err == nil:
		mode, have = st.Mode, workspace.ETagOf(st)
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	if want := h.Get("If-Match"); want != "" && !names(want, have) {
		return 0, thole.Errorf(thole.CodeConflict, "%q was changed meanwhile", path).WithHint("read it again")
	}
	if names(h.Get("If-None-Match"), have) {
		return 0, thole.Errorf(thole.CodeConflict, "%q is there already", path)
	}
	return mode, nil
}

// names reports whether a list of ETags has one, or means any.
func names(list, tag string) bool {
	return tag != "" && (strings.TrimSpace(list) == "*" ||
		slices.ContainsFunc(strings.Split(list, ","), func(t string) bool { return strings.TrimSpace(t) == tag }))
}

func (l *Local) replace(dir *beneath.Dir, name, path string, r *http.Request) (st beneath.Stat, err error) {
	temp := ".thole-" + thole.NewID[string](time.Now())
	f, err := dir.Create(temp, 0o600)
	if err != nil {
		return st, err
	}
	defer func() {
		f.Close()
		if err != nil {
			_ = dir.Remove(temp)
		}
	}()
	n, err := io.Copy(f, r.Body)
	if err == nil && r.ContentLength >= 0 && n != r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return st, thole.Errorf(thole.CodeUnavailable, "write file: %w", err)
	}
	l.writes.Lock() // two writers must not both find the version they expect
	defer l.writes.Unlock()
	mode, err := replaceable(dir, name, path, r.Header)
	if err != nil {
		return st, err
	}
	if err := errors.Join(f.Chmod(fs.FileMode(mode&0o777)), f.Sync()); err != nil {
		return st, err
	}
	if err := dir.Rename(temp, name); err != nil {
		return st, err
	}
	return beneath.StatFile(f)
}
