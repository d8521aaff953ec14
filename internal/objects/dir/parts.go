package dir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// An upload in parts is one file, named by the upload, into which each part is
// written at its place.

// uploadFile refuses names that BeginParts did not make.
func uploadFile(upload string) (string, error) {
	if len(upload) != len(newName()) || objects.CheckKey(upload) != nil {
		return "", thole.Errorf(thole.CodeInvalid, "invalid upload %q", upload)
	}
	return incoming + "/" + upload, nil
}

// BeginParts implements objects.Parts.
func (s *Store) BeginParts(_ context.Context, key string) (string, error) {
	if err := objects.CheckKey(key); err != nil {
		return "", err
	}
	upload := newName()
	f, err := s.root.OpenFile(incoming+"/"+upload, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("begin upload: %w", err)
	}
	return upload, f.Close()
}

func (s *Store) openUpload(upload string) (*os.File, string, error) {
	temp, err := uploadFile(upload)
	if err != nil {
		return nil, "", err
	}
	f, err := s.root.OpenFile(temp, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: upload %s", objects.ErrNotFound, upload)
	}
	return f, temp, err
}

func (s *Store) putPart(ctx context.Context, upload string, number int, body io.Reader, size int64, want objects.Sum) error {
	if number < 1 || number > 10_000 || size > objects.PartSize {
		return thole.Errorf(thole.CodeInvalid, "part %d of %d bytes is out of bounds", number, size)
	}
	f, _, err := s.openUpload(upload)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	w := io.MultiWriter(io.NewOffsetWriter(f, int64(number-1)*objects.PartSize), sum)
	n, err := io.Copy(w, io.LimitReader(withContext(ctx, body), size))
	if err != nil {
		return fmt.Errorf("store part: %w", err)
	}
	if n != size || objects.Sum(sum.Sum(nil)) != want {
		return thole.Errorf(thole.CodeInvalid, "part %d is not what was announced", number)
	}
	return nil
}

// EndParts implements objects.Parts. Every part was summed when it came, so only
// the size is left to check.
func (s *Store) EndParts(_ context.Context, key, upload string, parts []objects.Part) error {
	name, err := file(key)
	if err != nil {
		return err
	}
	f, temp, err := s.openUpload(upload)
	if err != nil {
		return err
	}
	defer f.Close()
	size := int64(0)
	for i, p := range parts {
		if p.Number != i+1 || i < len(parts)-1 && p.Size != objects.PartSize {
			return thole.Errorf(thole.CodeInvalid, "part %d is missing or short", i+1)
		}
		size += p.Size
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() != size {
		return thole.Errorf(thole.CodeInvalid, "upload has %d bytes, its parts %d", st.Size(), size)
	}
	return s.place(f, temp, name)
}

// AbortParts implements objects.Parts.
func (s *Store) AbortParts(_ context.Context, _, upload string) error {
	temp, err := uploadFile(upload)
	if err != nil {
		return err
	}
	if err := s.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("abort upload: %w", err)
	}
	return nil
}

// Sweep removes what uploads that never ended left behind.
func (s *Store) Sweep(before time.Time) error {
	entries, err := fs.ReadDir(s.root.FS(), incoming)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if st, serr := e.Info(); serr == nil && st.ModTime().Before(before) {
			err = errors.Join(err, s.root.Remove(incoming+"/"+e.Name()))
		}
	}
	return err
}
