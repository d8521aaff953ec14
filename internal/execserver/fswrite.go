//go:build linux

package execserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/unguarded"
)

// create opens a file for writing, creating or truncating it.
func (s scope) create(path string) (*os.File, error) {
	p, err := s.locate(path, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := s.need(p, sandbox.Write); err != nil {
		return nil, err
	}
	f, err := p.open(unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o666)
	if err == nil && !unguarded.Build {
		return regular(f, path)
	}
	return f, err
}

// regular refuses what is no file: a pipe would wait for its reader for ever.
func regular(f *os.File, path string) (*os.File, error) {
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, inputError(fmt.Sprintf("path `%s` is not a file", path))
	}
	return f, nil
}

func (s scope) writeFile(path string, data []byte) error {
	f, err := s.create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (s scope) createDirectory(path string, recursive bool) error {
	err := s.mkdir(path)
	if errors.Is(err, unix.ENOENT) && recursive && filepath.Dir(path) != path {
		if err = s.createDirectory(filepath.Dir(path), true); err == nil {
			err = s.mkdir(path)
		}
	}
	if errors.Is(err, unix.EEXIST) && recursive {
		if st, serr := s.target(path); serr == nil && kindOf(&st) == unix.S_IFDIR {
			return nil
		}
	}
	return err
}

func (s scope) mkdir(path string) error {
	p, err := s.locate(strings.TrimRight(path, "/"), true)
	if err != nil {
		return err
	}
	defer p.close()
	if p.name == "." || p.name == "" {
		return s.hide(p.real, unix.EEXIST)
	}
	if _, err := p.stat(false); err == nil {
		return s.hide(p.real, unix.EEXIST)
	}
	if err := s.need(p, sandbox.Write); err != nil {
		return err
	}
	return unix.Mkdirat(p.dir, p.name, 0o777)
}

func (s scope) remove(path string, recursive, force bool) error {
	if recursive && !s.follow {
		return osMessage("recursive no-follow removal is unsupported")
	}
	p, err := s.locate(strings.TrimRight(path, "/"), true)
	if err == nil {
		defer p.close()
		err = s.removeAt(p, recursive, 0)
	}
	if force && errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// osMessage is an error of this package that clients see as one of the system.
type osMessage string

func (e osMessage) Error() string { return string(e) }

// removeAt removes one place, depth below the one that was asked for; a link is removed itself.
func (s scope) removeAt(p place, recursive bool, depth int) error {
	st, err := p.stat(false)
	if err != nil {
		return err
	}
	if kindOf(&st) == unix.S_IFLNK && !s.follow {
		return s.hide(p.real, inputError("path contains a symbolic link"))
	}
	if err := s.need(p, sandbox.Write); err != nil {
		return err
	}
	if kindOf(&st) != unix.S_IFDIR {
		return unix.Unlinkat(p.dir, p.name, 0)
	}
	if recursive {
		if depth == maxDepth {
			return unix.ENAMETOOLONG
		}
		if err := s.empty(p, depth); err != nil {
			return err
		}
	}
	return unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR)
}

// empty removes what is in a directory, by descriptor: a directory swapped for a
// link meanwhile is not entered.
func (s scope) empty(p place, depth int) error {
	p.walked = true
	f, err := p.open(unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			child := place{dir: int(f.Fd()), name: name, real: filepath.Join(p.real, name), walked: true}
			if err := s.removeAt(child, true, depth+1); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// copy copies a file, a link as a link, or a tree.
func (s scope) copy(from, to string, recursive bool) error {
	src, err := s.locate(strings.TrimRight(from, "/"), true)
	if err != nil {
		return err
	}
	defer src.close()
	if err := s.need(src, sandbox.Read); err != nil {
		return err
	}
	st, err := src.stat(false)
	if err != nil {
		return err
	}
	switch kindOf(&st) {
	case unix.S_IFLNK:
		return s.copyLink(src, to)
	case unix.S_IFREG:
		return s.copyFile(src, to, uint32(st.Mode))
	case unix.S_IFDIR:
		if !recursive {
			return inputError("fs/copy requires recursive: true when sourcePath is a directory")
		}
		if s.inside(from, to) {
			return inputError("fs/copy cannot copy a directory to itself or one of its descendants")
		}
		return s.copyTree(from, to)
	}
	return inputError("fs/copy only supports regular files, directories, and symlinks")
}

func (s scope) copyLink(src place, to string) error {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(src.dir, src.name, buf)
	if err != nil {
		return err
	}
	dst, err := s.locate(to, true)
	if err != nil {
		return err
	}
	defer dst.close()
	if err := s.need(dst, sandbox.Write); err != nil {
		return err
	}
	return unix.Symlinkat(string(buf[:n]), dst.dir, dst.name)
}

func (s scope) copyFile(src place, to string, mode uint32) error {
	src.walked = true // it was no link a moment ago
	in, err := src.open(unix.O_RDONLY, 0)
	if err == nil {
		in, err = regular(in, src.real)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := s.create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(os.FileMode(mode & 0o7777))
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// inside reports whether a path that may not exist yet is the directory or below it.
func (s scope) inside(dir, path string) bool {
	real, err := s.canonicalize(dir)
	if err != nil {
		return true
	}
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if r, err := s.canonicalize(at); err == nil {
			at = filepath.Join(r, strings.TrimPrefix(filepath.Clean(path), at))
			return at == real || real == "/" || strings.HasPrefix(at, real+"/")
		}
		if at == "/" {
			return true
		}
	}
}

func (s scope) copyTree(from, to string) error {
	if err := s.createDirectory(to, true); err != nil {
		return err
	}
	names, err := s.list(from)
	if err != nil {
		return err
	}
	for _, e := range names {
		if e.kind == 0 {
			continue
		}
		if err := s.copy(filepath.Join(from, e.name), filepath.Join(to, e.name), true); err != nil {
			return err
		}
	}
	return nil
}
