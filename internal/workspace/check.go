package workspace

import (
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Check refuses a tree that could not have been made by a scan: unclean paths,
// names twice, names inside something that is no directory, bytes outside their
// object.
func (t *Tree) Check() error {
	c, err := newChecker(t.Version, t.Objects)
	if err != nil {
		return err
	}
	c.at = make(map[string]int, len(t.Entries))
	for i := range t.Entries {
		if err := c.next(t.Entries[:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// checker looks at the entries of a tree one after the other.
type checker struct {
	objects         []Object
	stored, content int64
	at              map[string]int // entries by path
}

func newChecker(version int, list []Object) (*checker, error) {
	if version < 1 || version > TreeVersion {
		return nil, thole.Errorf(thole.CodeUnsupported, "tree has version %d, this program reads up to %d", version, TreeVersion).WithHint("update thole")
	}
	c := &checker{objects: list, at: map[string]int{}}
	for _, o := range list {
		var sum int64
		for _, p := range o.Parts {
			if p.Size <= 0 {
				return nil, thole.Errorf(thole.CodeInvalid, "tree object %s has an empty part", o.ID)
			}
			sum += p.Size
		}
		if o.Size < 0 || o.Size > maxObject || len(o.Parts) > 0 && sum != o.Size {
			return nil, thole.Errorf(thole.CodeInvalid, "tree object %s has parts of another size", o.ID)
		}
		if o.Plain != 0 && (o.Plain < o.Size || o.Plain > MaxPack || len(o.Parts) > 0) {
			return nil, thole.Errorf(thole.CodeInvalid, "tree object %s is no pack", o.ID)
		}
		c.stored = min(c.stored+o.Size, maxObject)
	}
	return c, nil
}

// next looks at the last of the entries; those before it were looked at.
func (c *checker) next(entries []Entry) error {
	last := len(entries) - 1
	e := entries[last]
	bad := func(why string) error { return thole.Errorf(thole.CodeInvalid, "tree entry %q %s", e.Path, why) }
	if err := beneath.CheckPath(e.Path); err != nil {
		return err
	}
	if strings.Count(e.Path, "/") > MaxNesting {
		return thole.Errorf(thole.CodeInvalid, "tree entry %.40q… is more than %d directories deep", e.Path, MaxNesting)
	}
	if i := strings.LastIndexByte(e.Path, '/'); i >= 0 {
		if dir, ok := c.at[e.Path[:i]]; !ok || entries[dir].Kind != beneath.Folder {
			return bad("has no directory before it")
		}
	}
	if _, twice := c.at[e.Path]; twice {
		return bad("is there twice")
	}
	c.at[e.Path] = last
	if e.Kind != beneath.File && (e.Data != nil || e.Same != "") || !beneath.ValidAttrs(e.Attrs) {
		return bad("says of itself what cannot be")
	}
	switch e.Kind {
	case beneath.Folder:
	case beneath.Link:
		if e.Link == "" || strings.IndexByte(e.Link, 0) >= 0 {
			return bad("is a link to nothing")
		}
	case beneath.File:
		return c.file(e, entries[:last], bad)
	default:
		return bad("is no file, directory or link")
	}
	return nil
}

func (c *checker) file(e Entry, before []Entry, bad func(string) error) error {
	if e.Size < 0 || e.Data != nil && !e.Data.Valid(e.Size) {
		return bad("has holes that cannot be")
	}
	if e.Same != "" {
		if at, ok := c.at[e.Same]; !ok || at == len(before) || !e.sameFile(before[at]) {
			return bad("is not the file that it says it is")
		}
	}
	if !e.Stored() {
		return nil
	}
	if e.Object < 0 || e.Object >= len(c.objects) || e.Offset < 0 || e.Offset > c.objects[e.Object].Bytes()-e.Bytes() {
		return bad("lies outside its object")
	}
	if e.Same != "" {
		return nil // another name costs nothing
	}
	if c.content += e.Bytes(); c.content > max(contentFloor, contentRatio*c.stored) {
		return thole.Errorf(thole.CodeInvalid, "the tree's files are more than %d times what is stored of them", contentRatio).
			WithHint("these files were not made by use; restore an earlier snapshot")
	}
	return nil
}
