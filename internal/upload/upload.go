// Package upload takes what clients send as the files of a thread: an archive, or single
// files. It keeps the body on disk, has it unpacked and stored by another process, and
// names the result. It reads no archive itself, and holds no file in memory.
package upload

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"mime/multipart"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/depot"
	"github.com/tholehq/thole/internal/diskspace"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/source"
)

// ErrMedia is of an upload in a form that is not taken.
var ErrMedia = errors.New("an upload is not")

// Config makes a Service.
type Config struct {
	Files *depot.Depot
	// Dir is where bodies lie until they are stored.
	Dir string
	Log *slog.Logger
	Now func() time.Time
}

const (
	// atOnce is how many are taken at a time; others wait for their turn.
	atOnce = 2
	// maxFiles bounds the parts of a form, and spare what the disk keeps free.
	maxFiles = 50_000
	spare    = 512 << 20
)

// Service takes uploads. It implements choice.Uploads.
type Service struct {
	cfg  Config
	room chan struct{}
}

// New makes a Service, and removes what an earlier one left in its directory.
func New(cfg Config) (*Service, error) {
	if err := errors.Join(os.RemoveAll(cfg.Dir), os.MkdirAll(cfg.Dir, 0o700)); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "prepare uploads: %w", err)
	}
	return &Service{cfg: cfg, room: make(chan struct{}, atOnce)}, nil
}

// Take keeps what a client sends.
func (s *Service) Take(ctx context.Context, actor thole.Actor, media string, params map[string]string, body io.Reader) (view.Upload, error) {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-ctx.Done():
		return view.Upload{}, context.Cause(ctx)
	}
	if left, err := diskspace.Left(s.cfg.Dir); err == nil && left < spare {
		return view.Upload{}, thole.Errorf(thole.CodeUnavailable, "the disk of this machine is too full for an upload").WithHint("free some space in %s", s.cfg.Dir)
	}
	id := thole.NewID[string](s.cfg.Now())
	room := filepath.Join(s.cfg.Dir, id)
	files := filepath.Join(room, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return view.Upload{}, thole.Errorf(thole.CodeUnavailable, "keep upload: %w", err)
	}
	defer func() {
		if err := removeAll(room); err != nil {
			s.cfg.Log.Warn("remove an upload's files", "err", err)
		}
	}()
	archive := filepath.Join(room, "archive")
	if err := spool(archive, media, params, body); err != nil {
		return view.Upload{}, err
	}
	up, err := s.cfg.Files.StoreUpload(ctx, actor.User, id, archive, files)
	if err != nil {
		return view.Upload{}, err
	}
	return view.Upload{ID: id, Files: up.Files, Links: up.Links, Bytes: up.Bytes, ExpiresAt: up.Created.Add(depot.UploadKept)}, nil
}

// removeAll removes also directories that an archive made unwritable.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// spool writes a body to disk: an archive as it is, a form's files as an archive.
func spool(path, media string, params map[string]string, body io.Reader) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "keep upload: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch media {
	case "application/zip", "application/x-zip-compressed", "application/x-tar", "application/tar", "application/gzip", "application/x-gzip", "application/zstd", "application/octet-stream":
		if _, err := io.Copy(f, body); err != nil {
			return failed(err)
		}
		return nil
	case "multipart/form-data":
		return form(f, multipart.NewReader(body, params["boundary"]))
	}
	return thole.Errorf(thole.CodeInvalid, "%w %.100s", ErrMedia, media).
		WithHint("send application/zip, application/x-tar, application/gzip, application/zstd or multipart/form-data")
}

// form writes files as they come: where the form names them, and with no other mode than
// a plain file's.
func form(to io.Writer, from *multipart.Reader) error {
	z := zip.NewWriter(to)
	for n := 0; ; n++ {
		part, err := from.NextRawPart()
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return thole.Errorf(thole.CodeInvalid, "the form has no files")
			}
			if err := z.Close(); err != nil {
				return failed(err)
			}
			return nil
		}
		if err != nil {
			return failed(err)
		}
		if n == maxFiles {
			return thole.Errorf(thole.CodeInvalid, "the form has more than %d files", maxFiles).WithHint("send an archive")
		}
		_, named, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil || named["name"] == "" {
			return thole.Errorf(thole.CodeInvalid, "a part of the form has no name").WithHint("the name of a part is the path of its file")
		}
		h := &zip.FileHeader{Name: named["name"], Method: zip.Store}
		h.SetMode(0o644)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.Copy(w, part)
		}
		if err != nil {
			return failed(err)
		}
	}
}

func failed(err error) error {
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return thole.Errorf(thole.CodeUnavailable, "keep upload: %w", err)
	}
	return thole.Errorf(thole.CodeInvalid, "the upload broke off: %w", err)
}

// margin is how long before its end an upload is no longer taken: until the thread is
// there, it is not known to be needed.
const margin = time.Hour

// Resolve implements source.Resolver.
func (s *Service) Resolve(ctx context.Context, _ thole.ThreadID, r source.Request) (thole.Source, error) {
	up, err := s.cfg.Files.Upload(ctx, r.Actor.User, r.Upload)
	if err != nil {
		return thole.Source{}, err
	}
	if s.cfg.Now().After(up.Created.Add(depot.UploadKept - margin)) {
		return thole.Source{}, thole.Errorf(thole.CodeGone, "upload %s is too old", r.Upload).WithHint("send it again")
	}
	return thole.Source{Kind: thole.SourceUpload, Upload: r.Upload}, nil
}
