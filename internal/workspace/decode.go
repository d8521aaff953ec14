package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Bounds of a tree. One that an executor wrote is read by others too, so a small
// one must not become a large one: sums of files hardly shrink, and where there are
// few of them the floor is enough for 100,000 names.
const (
	// MaxTree bounds a stored tree: some millions of files.
	MaxTree   = 256 << 20
	treeRatio = 64
	treeFloor = 8 << 20
	// MaxEntries is how many names a tree may have, and objects: a reader holds some
	// 300 bytes for each.
	MaxEntries = 4_000_000
	// maxMember bounds one entry or object: one of 5 TiB has parts of some megabytes.
	maxMember = 16 << 20
	// treeWindow is what a compressed tree may look back; Encode looks back less.
	treeWindow = 16 << 20
	// MaxNesting is how deep directories may nest. Programs that go by paths end there
	// too; each level costs an open directory and a longer path in the tree.
	MaxNesting = 2048
	// Files that are equal share their bytes. What they come to on a disk is at most so
	// many times what is stored, or the floor.
	contentRatio = 256
	contentFloor = 1 << 30
)

// DecodeTree reads a stored tree and checks it. It holds what the tree says and never
// its text.
func DecodeTree(data []byte) (*Tree, error) {
	var plain io.Reader = bytes.NewReader(data)
	if len(data) == 0 || data[0] != '{' {
		dec, err := zstd.NewReader(plain, zstd.WithDecoderMaxMemory(treeWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer dec.Close()
		plain = dec
	}
	t := new(Tree)
	if err := t.read(&bounded{Reader: plain, all: treeLimit(data)}); thole.CodeOf(err) == thole.CodeUnsupported {
		return nil, err
	} else if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "decode tree of %d bytes: %w", len(data), err)
	}
	return t, nil
}

func treeLimit(data []byte) int64 {
	return min(4*MaxTree, max(treeFloor, treeRatio*int64(len(data))))
}

// bounded reads no more than all bytes, and next of them until it is set again.
type bounded struct {
	io.Reader
	all, next int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.all <= 0 || b.next <= 0 {
		return 0, errors.New("it holds more than a tree of its size can")
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.all, b.next)])
	b.all, b.next = b.all-int64(n), b.next-int64(n)
	return n, err
}

// read reads a tree member by member, and stops at the first that is wrong. Encode
// writes them in the order of Tree.
func (t *Tree) read(text *bounded) error {
	dec := json.NewDecoder(text)
	text.next = maxMember
	if got, err := dec.Token(); err != nil || got != json.Delim('{') {
		return errors.Join(err, errors.New("it is no object"))
	}
	var checks *checker
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if seen[name] || checks != nil && (name == "version" || name == "objects") {
			return fmt.Errorf("%.20q is there twice, or too late", name)
		}
		switch name {
		case "version":
			err = member(dec, text, &t.Version)
		case "template":
			err = member(dec, text, &t.Template)
		case "objects":
			err = members(dec, text, func(o Object) error { t.Objects = append(t.Objects, o); return within(t.Objects) })
		case "entries":
			if checks, err = newChecker(t.Version, t.Objects); err != nil {
				return err
			}
			err = members(dec, text, func(e Entry) error {
				t.Entries = append(t.Entries, e)
				return errors.Join(within(t.Entries), checks.next(t.Entries))
			})
		default:
			err = member(dec, text, new(json.RawMessage))
			name = "" // of another version: passed over
		}
		if err != nil {
			return err
		}
		seen[name] = name != ""
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.Join(err, errors.New("something follows it"))
	}
	if checks == nil {
		_, err := newChecker(t.Version, t.Objects)
		return err
	}
	return nil
}

func within[T any](list []T) error {
	if len(list) > MaxEntries {
		return fmt.Errorf("it has more than %d members", MaxEntries)
	}
	return nil
}

// member reads one value of at most maxMember.
func member(dec *json.Decoder, text *bounded, v any) error {
	text.next = maxMember
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	if v, ok := v.(json.Unmarshaler); ok { // exact by itself, and read once less
		return v.UnmarshalJSON(raw)
	}
	return strictjson.Unmarshal(raw, v)
}

// members reads the values of a list, or null.
func members[T any](dec *json.Decoder, text *bounded, take func(T) error) error {
	text.next = maxMember
	if got, err := dec.Token(); err != nil || got == nil {
		return err
	} else if got != json.Delim('[') {
		return fmt.Errorf("%v where a list belongs", got)
	}
	for dec.More() {
		var v T
		if err := member(dec, text, &v); err != nil {
			return err
		}
		if err := take(v); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}
