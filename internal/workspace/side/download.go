package side

import (
	"archive/zip"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// download sends a file, or a directory as a zip archive. Links are packed as
// links.
func (l *Local) download(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Query().Get("path")
	dir, name, err := l.at(p)
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	defer func() { dir.Close() }()
	as := "workspace"
	if name != "" {
		as = path.Base(p)
		st, err := dir.Lstat(name)
		if err != nil {
			jsonhttp.Error(w, fileError(p, err))
			return
		}
		if st.Kind == beneath.File {
			w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": as}))
			l.serveFile(w, r)
			return
		}
		sub, err := dir.Sub(name)
		if err != nil {
			jsonhttp.Error(w, fileError(p, err))
			return
		}
		dir.Close()
		dir = sub
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": as + ".zip"}))
	z := zip.NewWriter(w)
	if err := zipDir(r, z, dir, ""); err != nil {
		panic(http.ErrAbortHandler) // a clean end would look like a whole archive
	}
	if err := z.Close(); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func zipDir(r *http.Request, z *zip.Writer, dir *beneath.Dir, prefix string) error {
	if err := r.Context().Err(); err != nil {
		return err
	}
	names, err := dir.Names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		st, err := dir.Lstat(name)
		if err == nil {
			err = zipEntry(r, z, dir, name, prefix+name, st)
		}
		if err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

func zipEntry(r *http.Request, z *zip.Writer, dir *beneath.Dir, name, as string, st beneath.Stat) error {
	h := &zip.FileHeader{Name: as, Modified: time.Unix(0, st.Mtime).UTC(), Method: zip.Deflate}
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Kind {
	case beneath.Folder:
		sub, err := dir.Sub(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		h.Name += "/"
		h.SetMode(mode | fs.ModeDir)
		if _, err := z.CreateHeader(h); err != nil {
			return err
		}
		return zipDir(r, z, sub, as+"/")
	case beneath.Link:
		to, err := dir.Readlink(name)
		if err != nil {
			return err
		}
		h.SetMode(mode | fs.ModeSymlink)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(w, to)
		}
		return err
	case beneath.File:
		f, err := dir.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.Copy(w, f)
		}
		return err
	}
	return nil
}
