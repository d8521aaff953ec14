//go:build unix

package beneath

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// CopyFile copies a regular file to a new one in another directory. Holes stay holes:
// one costs an agent nothing.
func (d *Dir) CopyFile(ctx context.Context, name string, to *Dir, as string) (err error) {
	in, _, err := d.OpenLent(name)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := StatFile(in)
	if err != nil {
		return err
	}
	out, err := to.Create(as, st.Mode|0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf, size := make([]byte, 64<<10), int64(0)
	for {
		n, err := io.ReadFull(in, buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			if _, err := out.WriteAt(buf[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(size)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
}

// Part gives every file below d bytes of its own: one with further names could be
// written by those, wherever they are.
func (d *Dir) Part(ctx context.Context) error { return d.part(ctx, 0) }

func (d *Dir) part(ctx context.Context, depth int) error {
	if depth > maxParted {
		return fmt.Errorf("directories nest deeper than %d levels", maxParted)
	}
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		st, err := d.Lstat(name)
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
		case st.Kind == Folder:
			var sub *Dir
			if sub, _, err = d.SubLent(name); err == nil { // in a closed one there may be some too
				err = sub.part(ctx, depth+1)
				sub.Close()
			}
		case st.Kind == File && st.Links > 1:
			if err = d.RemoveAll(parted); err == nil {
				err = d.CopyFile(ctx, name, d, parted)
			}
			if err == nil {
				err = errors.Join(d.Chmod(parted, st.Mode), d.Chtimes(parted, st.Mtime), d.Rename(parted, name))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	maxParted = 512
	parted    = ".thole-parted" // a copy that is not whole
)
