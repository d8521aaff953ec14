package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/strictjson"
)

// maxManifest bounds the manifest that is read into memory.
const maxManifest = 1 << 30

// Restore makes a home of a copy. The home must not exist, or be empty. All of it is
// unpacked and compared with the manifest and the store next to the home before it takes
// the home's name: killed at any point it leaves no home. Logins, tokens and share links of
// the copy do not come back: some may have been revoked after it was made.
func Restore(ctx context.Context, path, home string) (_ *Report, err error) {
	home = filepath.Clean(home)
	if err := free(home); err != nil {
		return nil, err
	}
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, thole.Errorf(thole.CodeNotFound, "there is no backup at %s", path)
	}
	if err != nil {
		return nil, failed("restore", err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(home), 0o700); err != nil {
		return nil, failed("restore", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(home), filepath.Base(home)+".restoring-") // mode 0700
	if err != nil {
		return nil, failed("restore", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	info, err := in.Stat()
	if err != nil {
		return nil, failed("restore", err)
	}
	m, have, err := unpack(ctx, in, info.Size(), dir)
	if err != nil {
		return nil, err
	}
	bytes, err := compare(ctx, dir, m, have)
	if err != nil {
		return nil, err
	}
	notes, err := moved(ctx, filepath.Join(dir, store.FileName), m, home)
	if err != nil {
		return nil, err
	}
	ended, err := store.EndProofs(ctx, filepath.Join(dir, store.FileName))
	if err != nil {
		return nil, err
	}
	if ended > 0 {
		notes = append(notes, fmt.Sprintf("%d logins, API tokens and share links of the backup are ended, because they may have been revoked since: log in again with thole login", ended))
	}
	if err := free(home); err != nil { // it may have come meanwhile
		return nil, err
	}
	if err := os.Remove(home); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed("restore to "+home, err)
	}
	if err := errors.Join(syncTree(dir), os.Rename(dir, home), syncDir(filepath.Dir(home))); err != nil {
		return nil, failed("restore to "+home, err)
	}
	return &Report{Path: path, Home: home, Files: len(m.Files), Bytes: bytes, Counts: m.Counts, Notes: append(notes, m.Notes...)}, nil
}

// free refuses a home that something is in.
func free(home string) error {
	if owned, err := daemon.Owned(home); err != nil || owned {
		return errors.Join(err, thole.Errorf(thole.CodeBusy, "restore: thole runs on %s", home).WithHint("name another home with --home"))
	}
	entries, err := os.ReadDir(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failed("restore to "+home, err)
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == store.FileName }) {
		return thole.Errorf(thole.CodeConflict, "restore: %s is in use: it is the home of other threads", home).WithHint("name another home with --home, or move this one away")
	}
	if len(entries) > 0 {
		return thole.Errorf(thole.CodeConflict, "restore: %s is in use: it has %s in it", home, entries[0].Name()).WithHint("name another home with --home, or move this one away")
	}
	return nil
}

// unpack writes the files of a copy of size bytes below dir and returns the manifest and
// what was written.
func unpack(ctx context.Context, in io.Reader, size int64, dir string) (*Manifest, map[string]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, failed("restore", err)
	}
	defer root.Close()
	have := map[string]File{}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case errors.Is(err, io.EOF):
			return nil, nil, damaged("the backup has no end: it was cut, or is not a backup")
		case err != nil:
			return nil, nil, damaged("the backup cannot be read: %w", err)
		case h.Size > size: // holes that only its header has would fill the disk
			return nil, nil, damaged("the backup has a file that is larger than all of it: %q", h.Name)
		case h.Typeflag == tar.TypeDir:
			name := strings.TrimSuffix(h.Name, "/")
			if err := allowedDir(name); err != nil {
				return nil, nil, err
			}
			if err := errors.Join(root.MkdirAll(name, 0o700), root.Chmod(name, fs.FileMode(h.Mode).Perm()|0o700)); err != nil {
				return nil, nil, failed("restore "+h.Name, err)
			}
			continue
		case h.Typeflag != tar.TypeReg:
			return nil, nil, damaged("the backup has an entry that is not a file: %q", h.Name)
		}
		if h.Name == manifestName {
			var m Manifest
			if err := strictjson.Read(io.LimitReader(r, maxManifest), &m); err != nil {
				return nil, nil, damaged("the manifest of the backup cannot be read: %w", err)
			}
			if m.Format != format {
				return nil, nil, thole.Errorf(thole.CodeUnsupported, "the backup has format %d, and this thole reads %d", m.Format, format).WithHint("use the thole that made it, %s, or a newer one", m.Version)
			}
			return &m, have, nil
		}
		if err := allowed(h.Name); err != nil {
			return nil, nil, err
		}
		size -= h.Size
		f, err := write(root, h, r)
		if err != nil {
			return nil, nil, failed("restore "+h.Name, err)
		}
		have[h.Name] = f
	}
}

// allowed refuses names that no copy has: a file that was made to harm could place
// anything in a home. No copy has a name with a way back in it.
func allowed(name string) error {
	if own(name) && (name == store.FileName || slices.Contains(settings, name) || slices.ContainsFunc(slices.Concat(trees, gitTrees), func(tree string) bool {
		return strings.HasPrefix(name, tree+"/")
	})) {
		return nil
	}
	return damaged("the backup has a file that does not belong into a home: %q", name)
}

// allowedDir refuses directories that are neither in nor above what a copy has, above all
// the home itself, whose mode keeps other users out.
func allowedDir(name string) error {
	if own(name) && slices.ContainsFunc(slices.Concat(trees, gitTrees), func(tree string) bool {
		return name == tree || strings.HasPrefix(name, tree+"/") || strings.HasPrefix(tree, name+"/")
	}) {
		return nil
	}
	return damaged("the backup has a directory that does not belong into a home: %q", name)
}

func own(name string) bool { return filepath.IsLocal(name) && name != "." && path.Clean(name) == name }

func write(root *os.Root, h *tar.Header, r io.Reader) (File, error) {
	if err := root.MkdirAll(filepath.Dir(h.Name), 0o700); err != nil {
		return File{}, err
	}
	out, err := root.OpenFile(h.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode).Perm()|0o200) // git's objects are read-only
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), r)
	err = errors.Join(err, out.Chmod(fs.FileMode(h.Mode).Perm()), out.Sync(), out.Close())
	return File{Path: h.Name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// compare checks what was unpacked: every file by its hash, the store as a whole, its rows
// by their counts, and that every file that it names is there.
func compare(ctx context.Context, dir string, m *Manifest, have map[string]File) (bytes int64, err error) {
	if len(have) != len(m.Files) {
		return 0, damaged("the backup has %d files, and its manifest says %d", len(have), len(m.Files))
	}
	objects := false
	for _, f := range m.Files {
		if have[f.Path] != f {
			return 0, damaged("%s is damaged in the backup, or missing", f.Path)
		}
		objects = objects || strings.HasPrefix(f.Path, "objects/")
		bytes += f.Size
	}
	path := filepath.Join(dir, store.FileName)
	r, err := store.Check(ctx, path)
	if err != nil {
		return 0, err
	}
	if len(r.Problems) > 0 {
		return 0, damaged("the store in the backup is damaged: %s", r.Problems[0])
	}
	counts, err := countRows(ctx, path)
	if err != nil {
		return 0, err
	}
	if !maps.Equal(counts, m.Counts) {
		return 0, damaged("the store in the backup has other rows than its manifest says: %v, not %v", counts, m.Counts)
	}
	return bytes, missing(ctx, dir, objects || !slices.ContainsFunc(m.Notes, func(n string) bool { return strings.Contains(n, "objects of threads' files") }))
}

// moved says what of a home depends on the place that it was at.
func moved(ctx context.Context, path string, m *Manifest, home string) ([]string, error) {
	if m.Home == home {
		return nil, nil
	}
	files, err := sqldb.Peek(ctx, path, "threads", "select files from threads")
	if err != nil {
		return nil, err
	}
	n := 0
	for _, text := range files {
		var s thole.Source
		if text != "" && strictjson.Unmarshal([]byte(text), &s) == nil && slices.ContainsFunc(s.Objects, func(dir string) bool { return strings.HasPrefix(dir, m.Home+"/") }) {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("%d threads borrow git objects by the path of the old home: their agents cannot work before the home is at %s again", n, m.Home)}, nil
}

// syncTree makes the names in all directories durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(path)
	})
}
