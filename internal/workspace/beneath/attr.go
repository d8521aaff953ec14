package beneath

import "strings"

// Attr is one extended attribute of the user's namespace, the only one that an agent
// may set and that means nothing to the kernel.
type Attr struct {
	Name  string `json:"n"` // without "user."
	Value []byte `json:"v,omitempty"`
}

// Bounds of the extended attributes that are kept of one name.
const (
	maxAttrs     = 64
	maxAttrBytes = 16 << 10
)

// ValidAttrs reports whether attributes are in order of names and within bounds.
func ValidAttrs(list []Attr) bool {
	last, room := "", maxAttrBytes
	for _, a := range list {
		room -= len(a.Name) + len(a.Value)
		if a.Name <= last || len(a.Name) > 250 || strings.IndexByte(a.Name, 0) >= 0 || room < 0 {
			return false
		}
		last = a.Name
	}
	return len(list) <= maxAttrs
}

// Attrs are the extended attributes of d that are kept, and how many are not.
func (d *Dir) Attrs() ([]Attr, int) { return AttrsOf(d.f) }

// SetAttrs gives d extended attributes.
func (d *Dir) SetAttrs(list []Attr) error { return SetAttrs(d.f, list) }
