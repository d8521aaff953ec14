package side

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// index remembers how the files of a tree looked when they were read, so that
// what looks the same need not be read again. It is a cache: without it a scan
// reads everything. There is one file per tree; which one counts is decided by
// the tree the caller names, so an index of a sync that was never committed does
// no harm.
type index struct {
	tree  *workspace.Tree
	name  objects.Sum
	stats map[string]beneath.Stat // only of files that cannot have changed since
	at    map[string]int          // path to entry
}

func newIndex(t *workspace.Tree, name objects.Sum, stats map[string]beneath.Stat) *index {
	x := &index{tree: t, name: name, stats: stats, at: make(map[string]int, len(t.Entries))}
	for i, e := range t.Entries {
		x.at[e.Path] = i
	}
	return x
}

// entry returns what the tree says of a file if it still looks the same.
func (x *index) entry(path string, st beneath.Stat) (workspace.Entry, bool) {
	if x == nil {
		return workspace.Entry{}, false
	}
	have, ok := x.stats[path]
	if !ok || have != st {
		return workspace.Entry{}, false
	}
	i, ok := x.at[path]
	if !ok || x.tree.Entries[i].Unsettled {
		return workspace.Entry{}, false
	}
	return x.tree.Entries[i], true
}

func indexFile(dir string, name objects.Sum) string {
	return filepath.Join(dir, "index-2-"+name.String())
}

// save writes the index and drops those of other trees than it and keep.
func (x *index) save(dir string, encodedTree []byte, keep objects.Sum) error {
	var b []byte
	b = binary.AppendUvarint(b, uint64(len(encodedTree)))
	b = append(b, encodedTree...)
	b = binary.AppendUvarint(b, uint64(len(x.stats)))
	for path, st := range x.stats {
		b = binary.AppendUvarint(b, uint64(len(path)))
		b = append(b, path...)
		b = binary.AppendUvarint(b, uint64(st.Mode))
		b = binary.AppendVarint(b, st.Size)
		b = binary.AppendVarint(b, st.Mtime)
		b = binary.AppendVarint(b, st.Ctime)
		b = binary.AppendUvarint(b, st.Inode)
		b = binary.AppendUvarint(b, st.Links)
	}
	sum := objects.SumOf(b)
	if err := atomicfile.Write(indexFile(dir, x.name), append(sum[:], b...), 0o600); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), "index-") && name != indexFile(dir, x.name) && name != indexFile(dir, keep) {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// loadIndex reads the index of a tree; one that is missing or damaged is nil.
func loadIndex(dir string, name objects.Sum) *index {
	data, err := os.ReadFile(indexFile(dir, name))
	if err != nil || len(data) < len(name) || objects.SumOf(data[len(name):]) != objects.Sum(data[:len(name)]) {
		return nil
	}
	r := &decoder{b: data[len(name):]}
	t, err := workspace.DecodeTree(r.bytes())
	if err != nil {
		return nil
	}
	stats := make(map[string]beneath.Stat, len(t.Entries))
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		path := string(r.bytes())
		stats[path] = beneath.Stat{Kind: beneath.File, Mode: uint32(r.uvarint()), Size: r.varint(), Mtime: r.varint(), Ctime: r.varint(), Inode: r.uvarint(), Links: r.uvarint()}
	}
	if r.err != nil {
		return nil
	}
	return newIndex(t, name, stats)
}

type decoder struct {
	b   []byte
	err error
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

func (d *decoder) skip(n int) {
	if n <= 0 {
		d.err, d.b = io.ErrUnexpectedEOF, nil
		return
	}
	d.b = d.b[n:]
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.err, d.b = io.ErrUnexpectedEOF, nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}
