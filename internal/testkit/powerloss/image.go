package powerloss

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

type opKind string

const (
	opCreate   opKind = "create"
	opWrite    opKind = "write"
	opTruncate opKind = "truncate"
	opSync     opKind = "sync"
	opRename   opKind = "rename"
	opRemove   opKind = "remove"
	opSyncDir  opKind = "syncdir"
	opAck      opKind = "ack"
)

// op is one thing the work did. Paths are relative to the disk.
type op struct {
	kind opKind
	path string
	to   string // rename: the new path
	off  int64  // write: where; truncate: the new size
	data []byte
	what string // ack
}

const sector = 512

// inode is a file's content: what is certainly on the disk, and what was written
// since the last sync.
type inode struct {
	durable []byte
	pending []op
	linked  bool // its name is durable
}

// image is the disk after some operations: the names that exist, and the changes
// of names that no directory sync has made durable.
type image struct {
	files   map[string]*inode // as the running program sees them
	durable map[string]*inode // as they certainly are
	names   []op              // un-synced renames and removals, in order
	acked   []string
}

func newImage() *image {
	return &image{files: map[string]*inode{}, durable: map[string]*inode{}}
}

func (img *image) apply(o op) {
	switch o.kind {
	case opAck:
		img.acked = append(img.acked, o.what)
	case opCreate:
		if img.files[o.path] == nil {
			img.files[o.path] = &inode{}
		}
	case opWrite, opTruncate:
		f := img.files[o.path]
		f.pending = append(f.pending, o)
	case opSync:
		f := img.files[o.path]
		for _, p := range f.pending {
			f.durable = p.applyTo(f.durable)
		}
		f.pending = nil
		// A synced new file keeps its name: file systems in use commit the
		// entry with the inode, and SQLite syncs the directory itself.
		if !f.linked {
			f.linked = true
			img.durable[o.path] = f
		}
	case opRename:
		img.files[o.to] = img.files[o.path]
		delete(img.files, o.path)
		img.names = append(img.names, o)
	case opRemove:
		delete(img.files, o.path)
		img.names = append(img.names, o)
	case opSyncDir:
		img.names = slices.DeleteFunc(img.names, func(n op) bool {
			if filepath.Dir(n.path) != o.path {
				return false
			}
			img.durable = renamed(img.durable, n)
			return true
		})
		for path, f := range img.files {
			if filepath.Dir(path) == o.path {
				f.linked = true
				img.durable[path] = f
			}
		}
	}
}

func (o op) applyTo(b []byte) []byte {
	if o.kind == opTruncate {
		return resized(b, o.off)
	}
	b = resized(b, max(int64(len(b)), o.off+int64(len(o.data))))
	copy(b[o.off:], o.data)
	return b
}

// torn applies the sectors of a write that survive.
func (o op) torn(b []byte, survives func() bool) []byte {
	if o.kind == opTruncate {
		if survives() {
			return o.applyTo(b)
		}
		return b
	}
	for at := int64(0); at < int64(len(o.data)); {
		end := min(int64(len(o.data)), (o.off+at)/sector*sector+sector-o.off)
		if survives() {
			b = op{kind: opWrite, off: o.off + at, data: o.data[at:end]}.applyTo(b)
		}
		at = end
	}
	return b
}

// resized cuts b, which is the caller's own, or grows it with zeros.
func resized(b []byte, n int64) []byte {
	if int64(len(b)) >= n {
		return b[:n]
	}
	return append(b, make([]byte, n-int64(len(b)))...)
}

func renamed(names map[string]*inode, n op) map[string]*inode {
	f, ok := names[n.path]
	delete(names, n.path)
	if n.kind == opRename && ok {
		names[n.to] = f
	}
	return names
}

// state is a disk as it may be found: content by path.
type state map[string][]byte

// after chooses one state that a power cut may leave. Name changes survive as a
// prefix of their order, as on a journaling file system; data in any order.
func (img *image) after(survives func() bool) state {
	names := maps.Clone(img.durable)
	for _, path := range slices.Sorted(maps.Keys(img.files)) {
		if f := img.files[path]; !f.linked && survives() {
			names[path] = f
		}
	}
	for _, n := range img.names {
		if !survives() {
			break
		}
		if n.kind == opRename && names[n.path] == nil && img.files[n.to] != nil {
			names[n.path] = img.files[n.to] // the name came with the rename
		}
		names = renamed(names, n)
	}
	s := state{}
	for _, path := range slices.Sorted(maps.Keys(names)) {
		content := bytes.Clone(names[path].durable)
		for _, p := range names[path].pending {
			content = p.torn(content, survives)
		}
		s[path] = content
	}
	return s
}

func (s state) sum(acked int) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintln(h, acked)
	for _, path := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintln(h, path, len(s[path]))
		h.Write(s[path])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (s state) write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for path, content := range s {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(full, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
