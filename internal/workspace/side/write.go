package side

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// writer writes files whose bytes come from one object.
type writer struct {
	*laying
	ctx context.Context
	at  *beneath.Cursor
}

// object reads an object once, from the first byte needed to the last, and
// writes the files in it. The list is in the order of offsets; several files may
// share bytes.
func (w *writer) object(o workspace.Object, list []workspace.Entry) error {
	link, ok := w.links[o.ID]
	if !ok {
		return thole.Errorf(thole.CodeInvalid, "no link to object %s", o.ID)
	}
	if o.Bytes() > packSize+smallFile {
		for _, e := range list {
			if err := w.large(o, link, e); err != nil {
				return err
			}
		}
		return nil
	}
	first, end := list[0].Offset, int64(0)
	for _, e := range list {
		end = max(end, e.Offset+e.Bytes())
	}
	if o.Plain > 0 { // it can only be read from its beginning
		first, end = 0, o.Size
	}
	data := make([]byte, end-first)
	err := w.local.get(w.ctx, link, first, end-first, func(r io.Reader) error {
		_, err := io.ReadFull(r, data)
		return err
	})
	if err == nil {
		data, err = o.Expand(data)
	}
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	for _, e := range list {
		part := data[e.Offset-first:][:e.Bytes()]
		if !e.Sum.IsZero() && objects.SumOf(part) != e.Sum {
			return damaged(w.path(e))
		}
		if err := w.writeBytes(e, part); err != nil {
			return err
		}
	}
	return nil
}

func damaged(path string) error {
	return thole.Errorf(thole.CodeInternal, "what is stored of %q is damaged", path)
}

// create opens a new file where decide made room. A try that broke off may have
// left one.
func (w *writer) create(e workspace.Entry) (*os.File, error) {
	dir, name, err := w.at.Parent(w.path(e), false)
	if err != nil {
		return nil, refused(w.path(e), err)
	}
	f, err := dir.Create(name, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if err = dir.Remove(name); err == nil {
			f, err = dir.Create(name, 0o600)
		}
	}
	if err == nil && e.Data != nil {
		if err = f.Truncate(e.Size); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", w.path(e), err)
	}
	return f, nil
}

// finish sets mode and time of a written file and closes it.
func (w *writer) finish(f *os.File, e workspace.Entry) error {
	mode := fs.FileMode(e.Mode & 0o777)
	if e.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	err := beneath.SetAttrs(f, e.Attrs)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = beneath.SetTime(f, e.Mtime)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%q: %w", w.path(e), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Files++
	w.result.Bytes += e.Bytes()
	return nil
}

func (w *writer) writeBytes(e workspace.Entry, data []byte) error {
	f, err := w.create(e)
	if err != nil {
		return err
	}
	if _, err := e.Data.Writer(f).WriteAt(data, 0); err != nil {
		return errors.Join(fmt.Errorf("%q: %w", w.path(e), err), f.Close())
	}
	return w.finish(f, e)
}

// large writes one file of a large object part by part, so that a broken stream
// costs one part.
func (w *writer) large(o workspace.Object, link objects.Link, e workspace.Entry) (err error) {
	f, err := w.create(e)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	parts := o.Parts
	if len(parts) == 0 || e.Bytes() != o.Size {
		parts = []workspace.PartSum{{Size: e.Bytes(), Sum: e.Sum}}
	}
	off := int64(0)
	for _, p := range parts {
		err := w.local.get(w.ctx, link, e.Offset+off, p.Size, func(r io.Reader) error {
			h := sha256.New()
			n, err := io.Copy(io.MultiWriter(io.NewOffsetWriter(e.Data.Writer(f), off), h), io.LimitReader(r, p.Size))
			if err == nil && n != p.Size {
				err = io.ErrUnexpectedEOF
			}
			if err == nil && !p.Sum.IsZero() && objects.Sum(h.Sum(nil)) != p.Sum {
				err = errors.Join(errFinal, damaged(w.path(e)))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		off += p.Size
	}
	return w.finish(f, e)
}

// seed writes a seed file.
func (r *restore) seed(s workspace.SeedContent) error {
	rel, err := workspace.Relative(s.To)
	if err != nil || rel == "" {
		return thole.Errorf(thole.CodeInvalid, "%q is not below %s", s.To, workspace.Root)
	}
	if !r.local.has(rel) {
		return nil
	}
	parent := parentOf(rel)
	if err := r.root.OpenUp(parent); err != nil {
		return err
	}
	yields := s.IfMissingOnly || beneath.Within(parent, r.protected...) // to the thread's own files
	if parent != "" && !yields {
		moved, err := claim(r.root, []string{parent}, 0o755)
		if r.result.Moved = append(r.result.Moved, moved...); err != nil {
			return err
		}
	}
	dir, name, err := r.root.Parent(rel, true)
	if gone(err) && yields {
		return nil
	}
	if err != nil {
		return refused(rel, err)
	}
	defer dir.Close()
	if st, err := dir.Lstat(name); err == nil {
		if s.IfMissingOnly || beneath.Within(rel, r.protected...) {
			return nil
		}
		if st.Kind == beneath.Folder {
			to, err := dir.MoveAside(name)
			if err != nil {
				return err
			}
			r.result.Moved = append(r.result.Moved, workspace.Moved{From: rel, To: strings.TrimPrefix(parent+"/"+to, "/")})
		} else if err := dir.Remove(name); err != nil {
			return err
		}
	}
	e := workspace.Entry{Path: rel, Kind: beneath.File, Mode: 0o644, Mtime: r.local.cfg.Now().UnixNano(), Size: s.Size}
	a := &laying{restore: r}
	w := &writer{laying: a, ctx: r.ctx, at: &beneath.Cursor{Root: r.root}}
	defer w.at.Close()
	if s.Size == 0 {
		return w.writeBytes(e, nil)
	}
	return w.large(workspace.Object{Size: s.Size}, s.Link, e)
}
