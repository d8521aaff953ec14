// Package unpack writes the files of an archive into a directory. An archive is hostile: a
// name that is absolute or leads out, a link that does, a device, a name twice, more bytes
// or names than the bounds, all refuse the whole. Modes, times and links are kept, set-id
// bits are not. It follows no link, writes nothing outside the directory, and holds no
// file in memory.
package unpack

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Request names an archive and the directory that its files are written to, which is
// there and empty.
type Request struct {
	Archive string `json:"archive"`
	Dir     string `json:"dir"`
	Bounds
}

// Bounds of what an archive may hold.
type Bounds struct {
	Bytes   int64 `json:"bytes"`
	Entries int   `json:"entries"`
	// Ratio is how many bytes one byte of the archive may become, once there are more
	// than smallEnough.
	Ratio int64 `json:"ratio"`
}

// Default are the bounds of uploads.
var Default = Bounds{Bytes: 4 << 30, Entries: 200_000, Ratio: 200}

const (
	smallEnough = 64 << 20
	maxTarget   = 4096 // of a link
)

// Result counts what was written.
type Result struct {
	Files int   `json:"files"`
	Links int   `json:"links"`
	Bytes int64 `json:"bytes"`
}

// Unpack writes an archive's files.
func Unpack(ctx context.Context, req Request) (Result, error) {
	f, err := os.Open(req.Archive)
	if err != nil {
		return Result{}, thole.Errorf(thole.CodeUnavailable, "read the archive: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Result{}, thole.Errorf(thole.CodeUnavailable, "read the archive: %w", err)
	}
	root, err := beneath.Trusted(req.Dir)
	if err != nil {
		return Result{}, thole.Errorf(thole.CodeUnavailable, "open %s: %w", req.Dir, err)
	}
	defer root.Close()
	u := &unpacking{ctx: ctx, root: root, most: req.Bounds, left: req.Bounds, at: &beneath.Cursor{Root: root}, seen: map[string]beneath.Kind{}}
	defer u.at.Close()
	if most := max(smallEnough, info.Size()*req.Ratio); most < u.left.Bytes {
		u.left.Bytes, u.ratio = most, req.Ratio
	}
	head := make([]byte, 262)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Result{}, thole.Errorf(thole.CodeUnavailable, "read the archive: %w", err)
	}
	if err := u.read(f, info.Size(), head[:n]); err != nil {
		return Result{}, err
	}
	return u.out, u.finish()
}

// read finds out by its first bytes what the archive is.
func (u *unpacking) read(f *os.File, size int64, head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return u.zip(f, size)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bufio.NewReader(f))
		if err != nil {
			return damaged(err)
		}
		return u.tar(z)
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(bufio.NewReader(f), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return damaged(err)
		}
		defer z.Close()
		return u.tar(z)
	case len(head) == 262 && bytes.Equal(head[257:262], []byte("ustar")):
		return u.tar(f)
	}
	return thole.Errorf(thole.CodeInvalid, "this is neither a zip nor a tar, tar.gz or tar.zst archive")
}

func damaged(err error) error {
	var known *thole.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	var disk syscall.Errno
	if errors.As(err, &disk) {
		return thole.Errorf(thole.CodeUnavailable, "unpack the archive: %w", err)
	}
	return thole.Errorf(thole.CodeInvalid, "the archive cannot be read: %w", err)
}

type unpacking struct {
	ctx   context.Context
	root  *beneath.Dir
	at    *beneath.Cursor
	most  Bounds // as they were asked for
	left  Bounds
	ratio int64 // which bound left.Bytes is, 0: the absolute one
	seen  map[string]beneath.Kind
	dirs  []dirMode
	out   Result
}

type dirMode struct {
	path  string
	mode  uint32
	mtime int64
}

// entry is one name of an archive.
type entry struct {
	path  string
	kind  beneath.Kind
	mode  fs.FileMode
	mtime time.Time
	link  string // of a link
	same  string // an earlier file that this is another name of
	body  io.Reader
}

func (u *unpacking) tar(r io.Reader) error {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		e := entry{path: h.Name, mode: fs.FileMode(h.Mode & 0o1777), mtime: h.ModTime, body: t}
		switch h.Typeflag {
		case tar.TypeReg:
			e.kind = beneath.File
		case tar.TypeDir:
			e.kind = beneath.Folder
		case tar.TypeSymlink:
			e.kind, e.link = beneath.Link, h.Linkname
		case tar.TypeLink:
			e.kind, e.same = beneath.File, h.Linkname
		case tar.TypeXGlobalHeader:
			continue
		default:
			return refuse(h.Name, "is neither a file nor a directory nor a link")
		}
		if err := u.add(e); err != nil {
			return damaged(err)
		}
	}
}

func (u *unpacking) zip(f io.ReaderAt, size int64) error {
	z, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // which add refuses by name
		return damaged(err)
	}
	for _, h := range z.File {
		if err := u.zipEntry(h); err != nil {
			return damaged(err)
		}
	}
	return nil
}

func (u *unpacking) zipEntry(h *zip.File) error {
	e := entry{path: h.Name, mode: h.Mode() & fs.ModePerm, mtime: h.Modified}
	switch {
	case h.Flags&1 != 0:
		return refuse(h.Name, "is encrypted")
	case strings.ContainsRune(h.Name, '\\'):
		return refuse(h.Name, "has a backslash in its name")
	case strings.HasSuffix(h.Name, "/"), h.Mode().IsDir():
		e.kind = beneath.Folder
		return u.add(e)
	}
	body, err := h.Open()
	if err != nil {
		return err
	}
	defer body.Close()
	e.body = body
	switch {
	case h.Mode().IsRegular():
		e.kind = beneath.File
	case h.Mode()&fs.ModeSymlink != 0:
		to, err := io.ReadAll(io.LimitReader(body, maxTarget+1))
		if err != nil {
			return err
		}
		e.kind, e.link = beneath.Link, string(to)
	default:
		return refuse(h.Name, "is neither a file nor a directory nor a link")
	}
	return u.add(e)
}

func refuse(name, why string) error {
	return thole.Errorf(thole.CodeInvalid, "the archive is refused: %.200q %s", name, why)
}

// add writes one entry.
func (u *unpacking) add(e entry) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	if u.left.Entries--; u.left.Entries < 0 {
		return thole.Errorf(thole.CodeInvalid, "the archive is refused: it has more than %d names", u.most.Entries).WithHint("leave out what is built or installed, such as node_modules")
	}
	name := e.path
	e.path = strings.TrimPrefix(strings.TrimSuffix(e.path, "/"), "./")
	if e.kind == beneath.Folder && (e.path == "" || e.path == ".") {
		return nil
	}
	if err := checkName(e.path); err != nil {
		return refuse(name, err.Error())
	}
	if err := u.parents(e.path); err != nil {
		return refuse(name, err.Error())
	}
	if kind, twice := u.seen[e.path]; twice {
		if kind == beneath.Folder && e.kind == beneath.Folder {
			u.dirs = append(u.dirs, dirMode{e.path, uint32(e.mode), e.mtime.UnixNano()})
			return nil
		}
		return refuse(name, "is there twice")
	}
	u.seen[e.path] = e.kind
	dir, last, err := u.at.Parent(e.path, false)
	if err != nil {
		return refuse(name, err.Error())
	}
	switch e.kind {
	case beneath.Folder:
		u.dirs = append(u.dirs, dirMode{e.path, uint32(e.mode), e.mtime.UnixNano()})
		return dir.Mkdir(last, 0o700)
	case beneath.Link:
		if err := checkTarget(e.path, e.link); err != nil {
			return refuse(name, err.Error())
		}
		u.out.Links++
		return dir.Symlink(e.link, last)
	}
	u.out.Files++
	if e.same != "" {
		return u.another(e, dir, last, name)
	}
	return u.file(e, dir, last)
}

// checkName refuses what is no clean name below the directory, and the platform's own.
func checkName(path string) error {
	switch {
	case strings.HasPrefix(path, "/"):
		return errors.New("is an absolute path")
	case slices.Contains(strings.Split(path, "/"), ".."):
		return errors.New("leads out of the archive")
	case beneath.CheckPath(path) != nil:
		return errors.New("is not a clean relative path")
	case strings.Count(path, "/") > workspace.MaxNesting:
		return fmt.Errorf("is more than %d directories deep", workspace.MaxNesting)
	case beneath.Within(path, workspace.AgentData):
		return errors.New("is where agents keep their conversations")
	}
	return nil
}

// checkTarget refuses a link that leads out. A ".." stands only at the beginning, where
// directories are real: after a name, which may be a link, it could lead anywhere.
func checkTarget(path, target string) error {
	if target == "" || len(target) > maxTarget || strings.IndexByte(target, 0) >= 0 {
		return errors.New("is a link without a proper target")
	}
	if strings.HasPrefix(target, "/") {
		return fmt.Errorf("is a link to the absolute path %.200q", target)
	}
	depth, named := strings.Count(path, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == ".." && !named:
			depth--
		case part == "..":
			depth = -1
		case part != "" && part != ".":
			named = true
		}
		if depth < 0 {
			return fmt.Errorf("is a link to %.200q, which leads out of the archive", target)
		}
	}
	return nil
}

// parents makes the directories above a path that the archive did not name.
func (u *unpacking) parents(path string) error {
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		up := path[:i]
		switch kind, known := u.seen[up]; {
		case known && kind == beneath.Folder:
			continue
		case known:
			return errors.New("is below something that is no directory")
		}
		dir, last, err := u.at.Parent(up, false)
		if err == nil {
			err = dir.Mkdir(last, 0o755)
		}
		if err != nil {
			return err
		}
		u.seen[up] = beneath.Folder
	}
	return nil
}

func (u *unpacking) file(e entry, dir *beneath.Dir, last string) error {
	f, err := dir.Create(last, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(contextReader{u.ctx, e.body}, u.left.Bytes+1))
	u.left.Bytes -= n
	u.out.Bytes += n
	if err == nil && u.left.Bytes < 0 {
		why := thole.Errorf(thole.CodeInvalid, "the archive is refused: it holds more than %d MiB", u.most.Bytes>>20)
		if u.ratio > 0 {
			why = thole.Errorf(thole.CodeInvalid, "the archive is refused: its files are more than %d times as large as itself", u.ratio)
		}
		err = why
	}
	if err == nil {
		err = f.Chmod(e.mode & fs.ModePerm)
	}
	if err == nil && !e.mtime.IsZero() && e.mtime.Unix() > 0 {
		err = beneath.SetTime(f, e.mtime.UnixNano())
	}
	return errors.Join(err, f.Close())
}

// another gives a file of the archive another name.
func (u *unpacking) another(e entry, dir *beneath.Dir, last, name string) error {
	to := strings.TrimPrefix(e.same, "./")
	if u.seen[to] != beneath.File || to == e.path {
		return refuse(name, fmt.Sprintf("is another name of %.200q, which is no file of the archive before it", e.same))
	}
	at, old, err := u.root.Parent(to, false)
	if err != nil {
		return err
	}
	defer at.Close()
	return dir.HardLink(at, old, last)
}

// finish gives directories their modes, the deepest first: one that may not be written
// could not have been filled.
func (u *unpacking) finish() error {
	for _, d := range slices.Backward(u.dirs) {
		dir, last, err := u.root.Parent(d.path, false)
		if err != nil {
			return err
		}
		err = dir.Chmod(last, d.mode&beneath.ModeBits|0o700)
		if err == nil && d.mtime > 0 {
			err = dir.Chtimes(last, d.mtime)
		}
		if err := errors.Join(err, dir.Close()); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "unpack: %w", err)
		}
	}
	return nil
}

// contextReader ends a copy with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
