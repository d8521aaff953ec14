package workspace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
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

// TreeVersion is the form that Encode writes. The one before had no holes, hard
// links, attributes, times of directories and compressed packs; it is still read.
const TreeVersion = 2

// Object holds the bytes of files: a pack of small ones, or one large file.
type Object struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
	// Plain is the size of a compressed pack once it is read, 0 for bytes that are
	// stored as they are. Offsets of entries are those of the plain bytes.
	Plain int64 `json:"plain,omitempty"`
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
	// Data are the stretches of a file with holes; its Sum is of their bytes.
	Data beneath.Extents
	// Same is an entry before this one that is the same file under another name.
	// All else is as there.
	Same  string
	Attrs []beneath.Attr
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

	Holes   bool            `json:"z,omitempty"`
	Data    beneath.Extents `json:"d,omitempty"`
	Same    string          `json:"e,omitempty"`
	RawSame string          `json:"E,omitempty"`
	Attrs   []beneath.Attr  `json:"a,omitempty"`
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
		Unsettled: e.Unsettled, Lost: e.Unsettled && !e.Known, Holes: e.Data != nil, Data: e.Data, Attrs: e.Attrs}
	w.Same, w.RawSame = textOrRaw(e.Same)
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
		Unsettled: w.Unsettled, Known: w.Unsettled && !w.Lost, Attrs: w.Attrs}
	if w.Holes {
		e.Data = append(beneath.Extents{}, w.Data...)
	}
	var err error
	if e.Same, err = fromRaw(w.Same, w.RawSame); err != nil {
		return err
	}
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
	if int64(len(plain)) > treeLimit(data) { // no reader would believe it
		data = plain
	}
	return data, objects.SumOf(data), nil
}

// Stored reports whether a file's bytes are in an object. Empty files have none.
func (e Entry) Stored() bool {
	return e.Kind == beneath.File && e.Bytes() > 0 && (!e.Unsettled || e.Known)
}

// Bytes is how many bytes of a file are stored: all but its holes.
func (e Entry) Bytes() int64 { return e.Data.Len(e.Size) }

// sameFile reports whether e can be another name of the file that o is.
func (e Entry) sameFile(o Entry) bool {
	e.Path, e.Same = o.Path, ""
	return o.Same == "" && e.Equal(o)
}

// Equal reports whether two entries say the same.
func (e Entry) Equal(o Entry) bool {
	return e.Path == o.Path && e.Kind == o.Kind && e.Mode == o.Mode && e.Mtime == o.Mtime && e.Size == o.Size && e.Sum == o.Sum && e.Object == o.Object &&
		e.Offset == o.Offset && e.Link == o.Link && e.Unsettled == o.Unsettled && e.Known == o.Known && e.Same == o.Same && e.SameData(o) &&
		slices.EqualFunc(e.Attrs, o.Attrs, func(a, b beneath.Attr) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) })
}

// SameData reports whether two files have their holes at the same places.
func (e Entry) SameData(o Entry) bool {
	return (e.Data == nil) == (o.Data == nil) && slices.Equal(e.Data, o.Data)
}
