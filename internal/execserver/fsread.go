//go:build linux

package execserver

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/protocol/exec"
)

const (
	// maxFile is what fits a message of 64 MiB as base64. A larger answer would reach no
	// client, and its copies would take several times its size of memory.
	maxFile    = 47 << 20
	maxEntries = 50_000
)

// openRegular opens a regular file for reading. Special files are refused before
// they are opened: opening some of them waits or acts.
func (s scope) openRegular(path string) (*os.File, error) {
	p, err := s.locate(path, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := s.need(p, sandbox.Read); err != nil {
		return nil, err
	}
	if st, err := p.stat(s.follow); err != nil {
		return nil, err
	} else if k := kindOf(&st); k != unix.S_IFREG && k != unix.S_IFLNK {
		return nil, inputError(fmt.Sprintf("path `%s` is not a file", path))
	}
	f, err := p.open(unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return regular(f, path)
}

// errLargeFile refuses a file that no answer can carry.
var errLargeFile = inputError(fmt.Sprintf("file exceeds %d bytes: read it in blocks, with fs/open and fs/readBlock", maxFile))

// readFile reads a file whose size room has agreed to.
func (s scope) readFile(path string, room func(size int64) error) ([]byte, error) {
	f, err := s.openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() > maxFile {
		return nil, errLargeFile
	}
	if err := room(fi.Size()); err != nil {
		return nil, err
	}
	data := make([]byte, 0, fi.Size()+1)
	for len(data) <= maxFile {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errLargeFile
}

func (s scope) metadata(path string) (exec.FileMetadata, error) {
	p, err := s.locate(path, true)
	if err != nil {
		return exec.FileMetadata{}, err
	}
	defer p.close()
	if err := s.need(p, sandbox.Read); err != nil {
		return exec.FileMetadata{}, err
	}
	st, err := p.stat(false)
	if err != nil {
		return exec.FileMetadata{}, err
	}
	link := kindOf(&st) == unix.S_IFLNK
	if link && !s.follow {
		return exec.FileMetadata{}, inputError("path contains a symbolic link")
	}
	if link {
		if st, err = s.target(path); err != nil {
			return exec.FileMetadata{}, err
		}
	}
	return exec.FileMetadata{
		IsDirectory: kindOf(&st) == unix.S_IFDIR, IsFile: kindOf(&st) == unix.S_IFREG, IsSymlink: link,
		Size: st.Size, CreatedAtMs: millis(st.Btime), ModifiedAtMs: millis(st.Mtime),
	}, nil
}

// target describes what a path leads to.
func (s scope) target(path string) (unix.Statx_t, error) {
	p, err := s.locate(path, false)
	if err != nil {
		return unix.Statx_t{}, err
	}
	defer p.close()
	if err := s.need(p, sandbox.Read); err != nil {
		return unix.Statx_t{}, err
	}
	return p.stat(true)
}

func millis(t unix.StatxTimestamp) int64 {
	return t.Sec*1000 + int64(t.Nsec)/1_000_000
}

func (s scope) canonicalize(path string) (string, error) {
	p, err := s.walk(path, false)
	if err != nil {
		return "", err
	}
	defer p.close()
	if err := s.need(p, sandbox.Read); err != nil {
		return "", err
	}
	if _, err := p.stat(false); err != nil {
		return "", err
	}
	return p.real, nil
}

// entry is a name in a directory and what it is itself.
type entry struct {
	name string
	kind uint32
}

// list reads one directory, unsorted.
func (s scope) list(path string) ([]entry, error) {
	p, err := s.locate(path, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := s.need(p, sandbox.Read); err != nil {
		return nil, err
	}
	f, err := p.open(unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []entry
	for {
		batch, err := f.ReadDir(1024)
		for _, e := range batch {
			out = append(out, entry{e.Name(), modeKind(e.Type())})
		}
		if len(out) > maxEntries {
			return nil, fmt.Errorf("directory has more than %d entries", maxEntries)
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func modeKind(m os.FileMode) uint32 {
	switch {
	case m.IsRegular():
		return unix.S_IFREG
	case m.IsDir():
		return unix.S_IFDIR
	case m&os.ModeSymlink != 0:
		return unix.S_IFLNK
	}
	return 0
}

// readDirectory lists names with the type of what they lead to; dangling links
// are left out.
func (s scope) readDirectory(path string) ([]exec.DirEntry, error) {
	names, err := s.list(path)
	if err != nil {
		return nil, err
	}
	out := make([]exec.DirEntry, 0, len(names))
	for _, e := range names {
		kind := e.kind
		if kind == unix.S_IFLNK {
			st, err := s.target(path + "/" + e.name)
			if err != nil {
				continue
			}
			kind = kindOf(&st)
		}
		out = append(out, exec.DirEntry{FileName: e.name, IsDirectory: kind == unix.S_IFDIR, IsFile: kind == unix.S_IFREG})
	}
	return out, nil
}
