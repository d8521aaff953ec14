package workspace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Tree is one state of a workspace: what there is, and where its bytes are. A
// stored tree is named by the sum of its encoding, so it never changes.
type Tree struct {
	Version int `json:"version"`
	// Template is the runtime version whose template lies under this tree.
	Template string   `json:"template,omitempty"`
	Objects  []Object `json:"objects"`
	Entries  []Entry  `json:"entries"` // a directory stands before what is in it
}

// TreeVersion is the form that Encode writes.
const TreeVersion = 1

// Object holds the bytes of files: a pack of small ones, or one large file.
type Object struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
	// Parts are the pieces an object of more than PartSize is moved in.
	Parts []PartSum `json:"parts,omitempty"`
}

// PartSum is one piece of a large object.
type PartSum struct {
	Size int64       `json:"size"`
	Sum  objects.Sum `json:"sum"`
}

// PartSize is where a file stops being one piece.
const PartSize = objects.PartSize

// maxObject is more than object stores take.
const maxObject = 1 << 50

// Entry is one name in a tree.
type Entry struct {
	Path  string
	Kind  beneath.Kind
	Mode  uint32
	Mtime int64
	Size  int64
	// Sum is of the file's bytes, or, for a file in parts, of its parts' sums. A
	// layer of plain objects has none.
	Sum    objects.Sum
	Object int // index into Tree.Objects
	Offset int64
	Link   string
	// Unsettled marks a file that changed whenever it was read. Its bytes are
	// those of the tree before; without Known there are none.
	Unsettled bool
	Known     bool
}

// wireEntry is an entry as it is stored. Names are bytes, JSON has text: a name
// that is no UTF-8 travels in base64.
type wireEntry struct {
	Path      string       `json:"p,omitempty"`
	RawPath   string       `json:"P,omitempty"`
	Kind      string       `json:"k"`
	Mode      uint32       `json:"m,omitempty"`
	Mtime     int64        `json:"t,omitempty"`
	Size      int64        `json:"s,omitempty"`
	Sum       *objects.Sum `json:"h,omitempty"`
	Object    int          `json:"o,omitempty"`
	Offset    int64        `json:"f,omitempty"`
	Link      string       `json:"l,omitempty"`
	RawLink   string       `json:"L,omitempty"`
	Unsettled bool         `json:"u,omitempty"`
	Lost      bool         `json:"x,omitempty"`
}

func textOrRaw(s string) (text, raw string) {
	if utf8.ValidString(s) {
		return s, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(s))
}

func fromRaw(text, raw string) (string, error) {
	if raw == "" {
		return text, nil
	}
	b, err := base64.StdEncoding.DecodeString(raw)
	return string(b), err
}

// MarshalJSON implements json.Marshaler.
func (e Entry) MarshalJSON() ([]byte, error) {
	w := wireEntry{Kind: string(rune(e.Kind)), Mode: e.Mode, Mtime: e.Mtime, Size: e.Size, Object: e.Object, Offset: e.Offset,
		Unsettled: e.Unsettled, Lost: e.Unsettled && !e.Known}
	w.Path, w.RawPath = textOrRaw(e.Path)
	w.Link, w.RawLink = textOrRaw(e.Link)
	if !e.Sum.IsZero() {
		w.Sum = &e.Sum
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var w wireEntry
	if err := strictjson.Unmarshal(data, &w); err != nil {
		return err
	}
	if len(w.Kind) != 1 {
		return thole.Errorf(thole.CodeInvalid, "tree entry has kind %q", w.Kind)
	}
	*e = Entry{Kind: beneath.Kind(w.Kind[0]), Mode: w.Mode, Mtime: w.Mtime, Size: w.Size, Object: w.Object, Offset: w.Offset,
		Unsettled: w.Unsettled, Known: w.Unsettled && !w.Lost}
	var err error
	if e.Path, err = fromRaw(w.Path, w.RawPath); err != nil {
		return err
	}
	if e.Link, err = fromRaw(w.Link, w.RawLink); err != nil {
		return err
	}
	if w.Sum != nil {
		e.Sum = *w.Sum
	}
	return nil
}

// Encode returns the stored form of a tree and its name.
func (t *Tree) Encode() ([]byte, objects.Sum, error) {
	t.Version = TreeVersion
	plain, err := json.Marshal(t)
	if err != nil {
		return nil, objects.Sum{}, err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, objects.Sum{}, err
	}
	defer enc.Close()
	data := enc.EncodeAll(plain, nil)
	return data, objects.SumOf(data), nil
}

// Bounds of a tree. One that an executor wrote is read by the owner too, so a small
// one must not become a large one: sums of files hardly shrink, and where there are
// few of them the floor is enough for 100,000 names.
const (
	// MaxTree bounds a stored tree: some millions of files.
	MaxTree   = 256 << 20
	treeRatio = 64
	treeFloor = 8 << 20
	// MaxNesting is how deep directories may nest. Programs that go by paths end there
	// too; each level costs an open directory and a longer path in the tree.
	MaxNesting = 2048
	// Files that are equal share their bytes. What they come to on a disk is at most so
	// many times what is stored, or the floor.
	contentRatio = 256
	contentFloor = 1 << 30
)

// DecodeTree reads a stored tree and checks it.
func DecodeTree(data []byte) (*Tree, error) {
	limit := min(4*MaxTree, max(treeFloor, treeRatio*int64(len(data))))
	dec, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderMaxMemory(uint64(limit)), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	plain, err := io.ReadAll(io.LimitReader(dec, limit+1))
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "decode tree: %w", err)
	}
	if int64(len(plain)) > limit {
		return nil, thole.Errorf(thole.CodeInvalid, "decode tree: %d bytes hold more than %d", len(data), limit)
	}
	var t Tree
	if err := strictjson.Unmarshal(plain, &t); err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "decode tree: %w", err)
	}
	return &t, t.Check()
}

// Check refuses a tree that could not have been made by a scan: unclean paths,
// names twice, names inside something that is no directory, bytes outside their
// object.
func (t *Tree) Check() error {
	bad := func(e Entry, why string) error {
		return thole.Errorf(thole.CodeInvalid, "tree entry %q %s", e.Path, why)
	}
	if t.Version != TreeVersion {
		return thole.Errorf(thole.CodeUnsupported, "tree has version %d, this program reads %d", t.Version, TreeVersion).WithHint("update thole")
	}
	for _, o := range t.Objects {
		var sum int64
		for _, p := range o.Parts {
			if p.Size <= 0 {
				return thole.Errorf(thole.CodeInvalid, "tree object %s has an empty part", o.ID)
			}
			sum += p.Size
		}
		if o.Size < 0 || o.Size > maxObject || len(o.Parts) > 0 && sum != o.Size {
			return thole.Errorf(thole.CodeInvalid, "tree object %s has parts of another size", o.ID)
		}
	}
	var stored, content int64
	for _, o := range t.Objects {
		stored = min(stored+o.Size, maxObject)
	}
	kinds := make(map[string]beneath.Kind, len(t.Entries))
	for _, e := range t.Entries {
		if err := beneath.CheckPath(e.Path); err != nil {
			return err
		}
		if strings.Count(e.Path, "/") > MaxNesting {
			return thole.Errorf(thole.CodeInvalid, "tree entry %.40q… is more than %d directories deep", e.Path, MaxNesting)
		}
		if _, twice := kinds[e.Path]; twice {
			return bad(e, "is there twice")
		}
		kinds[e.Path] = e.Kind
		if i := strings.LastIndexByte(e.Path, '/'); i >= 0 && kinds[e.Path[:i]] != beneath.Folder {
			return bad(e, "has no directory before it")
		}
		switch e.Kind {
		case beneath.Folder:
		case beneath.Link:
			if e.Link == "" || strings.IndexByte(e.Link, 0) >= 0 {
				return bad(e, "is a link to nothing")
			}
		case beneath.File:
			if !e.Stored() {
				continue
			}
			if e.Object < 0 || e.Object >= len(t.Objects) || e.Size < 0 || e.Offset < 0 || e.Offset > t.Objects[e.Object].Size-e.Size {
				return bad(e, "lies outside its object")
			}
			if content += e.Size; content > max(contentFloor, contentRatio*stored) {
				return thole.Errorf(thole.CodeInvalid, "the tree's files are more than %d times what is stored of them", contentRatio).
					WithHint("these files were not made by use; restore an earlier snapshot")
			}
		default:
			return bad(e, "is no file, directory or link")
		}
	}
	return nil
}

// Stored reports whether a file's bytes are in an object. Empty files have none.
func (e Entry) Stored() bool {
	return e.Kind == beneath.File && e.Size > 0 && (!e.Unsettled || e.Known)
}
