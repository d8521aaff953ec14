// Package backup copies a whole home into one file while thole runs, and makes a home of
// such a file. Make and Restore are its entry points.
//
// A copy has the store, the objects of threads' files, artifacts, shelves, mirrors,
// uploads and the settings. It never has the key of the vault, logins, or what only the
// running processes of a home need: a copy alone opens no secret.
package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/store"
)

const (
	format       = 1
	manifestName = "manifest.json" // the last entry: a file that was cut has none
	stagingName  = "backup.tmp"
	lockName     = "backup.lock"
)

// Manifest is what a copy has to be.
type Manifest struct {
	Format  int              `json:"format"`
	Version string           `json:"thole_version"`
	Created time.Time        `json:"created_at"`
	Home    string           `json:"home"`
	Schema  int64            `json:"schema"`
	Counts  map[string]int64 `json:"counts"` // rows of the store
	Files   []File           `json:"files"`
	Notes   []string         `json:"notes"`
}

// File is one file of a copy.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Report is what was done.
type Report struct {
	Path   string           `json:"path"`
	Home   string           `json:"home"`
	Files  int              `json:"files"`
	Bytes  int64            `json:"bytes"`
	Counts map[string]int64 `json:"counts"`
	Notes  []string         `json:"notes"` // what the copy does not have, or what has to be done
}

// Source is the home to copy.
type Source struct {
	Home    string
	Version string
	// Elsewhere names the place of the objects if that is not the home.
	Elsewhere string
}

// Make writes a copy of a home to dest, which must not exist. The owner of the home may
// go on: files are linked into a directory of the home first, the store is copied between
// two such passes, and every object that the store names has to be there. Killed at any
// point it leaves no dest.
func Make(ctx context.Context, src Source, dest string, now time.Time) (_ *Report, err error) {
	if _, err := os.Lstat(dest); err == nil {
		return nil, thole.Errorf(thole.CodeConflict, "back up: %s already exists", dest).WithHint("name a file that does not exist yet")
	}
	if _, err := os.Stat(filepath.Join(src.Home, store.FileName)); err != nil {
		return nil, thole.Errorf(thole.CodeNotFound, "back up: there is no home at %s", src.Home).WithHint("name it with --home or THOLE_HOME")
	}
	lock, err := daemon.LockFile(ctx, filepath.Join(src.Home, lockName), 0)
	if thole.CodeOf(err) == thole.CodeBusy {
		return nil, thole.Errorf(thole.CodeBusy, "another backup of %s is being made", src.Home).WithHint("wait for its end")
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	stage := staging{home: src.Home, dir: filepath.Join(src.Home, stagingName)}
	if err := errors.Join(os.RemoveAll(stage.dir), os.Mkdir(stage.dir, 0o700)); err != nil { // a killed backup left it
		return nil, failed("back up", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage.dir)) }()
	schema, err := stage.fill(ctx, src.Elsewhere == "")
	if err != nil {
		return nil, err
	}
	counts, err := countRows(ctx, filepath.Join(stage.dir, store.FileName))
	if err != nil {
		return nil, err
	}
	m := Manifest{Format: format, Version: src.Version, Created: now.UTC(), Home: src.Home, Schema: schema, Counts: counts, Files: []File{}, Notes: []string{}}
	if src.Elsewhere != "" {
		m.Notes = append(m.Notes, "the objects of threads' files are not in it: they are in "+src.Elsewhere)
	}
	if keys, err := store.VaultKEKs(ctx, filepath.Join(stage.dir, store.FileName)); err == nil && len(keys) > 0 {
		m.Notes = append(m.Notes, "the key of the vault is not in it: keep a copy of it in another place")
	}
	bytes, err := writeTar(ctx, stage.dir, dest, &m)
	if err != nil {
		return nil, err
	}
	return &Report{Path: dest, Home: src.Home, Files: len(m.Files), Bytes: bytes, Counts: counts, Notes: m.Notes}, nil
}

// writeTar writes all files below dir and the manifest to a new file of mode 0600.
func writeTar(ctx context.Context, dir, dest string, m *Manifest) (size int64, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(dest), filepath.Base(dest)+".tmp-*")
	if err != nil {
		return 0, failed("back up", err)
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	out := tar.NewWriter(tmp)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			return out.WriteHeader(&tar.Header{Name: filepath.ToSlash(name) + "/", Mode: int64(info.Mode().Perm()), ModTime: m.Created, Typeflag: tar.TypeDir, Format: tar.FormatPAX})
		}
		f, err := addFile(out, path, filepath.ToSlash(name), m.Created)
		m.Files = append(m.Files, f)
		return errors.Join(err, ctx.Err())
	})
	if err == nil {
		err = addManifest(out, m)
	}
	if err = errors.Join(err, out.Close(), tmp.Sync()); err != nil {
		return 0, failed("write "+dest, err)
	}
	info, err := tmp.Stat()
	// Link, not rename: a file that appeared meanwhile is not overwritten.
	if err = errors.Join(err, os.Link(tmp.Name(), dest), syncDir(filepath.Dir(dest))); err != nil {
		return 0, failed("write "+dest, err)
	}
	return info.Size(), nil
}

func addFile(out *tar.Writer, path, name string, at time.Time) (File, error) {
	in, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return File{}, err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := out.WriteHeader(h); err != nil {
		return File{}, err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, sum), in); err != nil {
		return File{}, err
	}
	return File{Path: name, Size: info.Size(), SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

func addManifest(out *tar.Writer, m *Manifest) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(text)), ModTime: m.Created, Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// failed says what could not be done because of the disk.
func failed(what string, err error) error {
	if code := thole.CodeOf(err); code != "" && code != thole.CodeInternal {
		return err
	}
	return thole.Errorf(thole.CodeUnavailable, "%s: %w", what, err)
}
