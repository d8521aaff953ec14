package strictjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// maxDepth is that of encoding/json.
const maxDepth = 10000

// walker goes through a text along a plan. It checks names only: the grammar is
// encoding/json's, and a text that the walker does not understand is invalid.
type walker struct {
	data   []byte
	pos    int
	known  bool // unknown members are refused by who reads next
	whole  bool // nulls and absent members are refused
	masked []byte
	err    error
}

// value passes one value; false when there is none or it was refused.
func (w *walker) value(p *plan, depth int) bool {
	if depth > maxDepth {
		w.err = fmt.Errorf("JSON is nested deeper than %d", maxDepth)
		return false
	}
	switch c := w.peek(); {
	case c == 0:
		return false
	case p.kind == encoded && w.whole && c == '[':
		w.err = errors.New("invalid type: a list, expected a base64 string")
		return false
	case p.kind == opaque || p.kind == encoded || p.kind == flat && !w.whole || c != '{' && c != '[':
		return w.skip()
	case c == '[':
		return w.list(p, depth)
	}
	return w.object(p, depth)
}

func (w *walker) list(p *plan, depth int) bool {
	elem, nulls := p, true
	switch p.kind {
	case list, flat:
		elem, nulls = p.elem, p.nulls
	case anything:
	default: // encoding/json refuses a list here, or leaves it out
		elem = &plan{kind: anything}
	}
	w.pos++
	if w.peek() == ']' {
		w.pos++
		return true
	}
	for w.mayBe(nulls, "element") && w.value(elem, depth+1) {
		switch w.peek() {
		case ',':
			w.pos++
		case ']':
			w.pos++
			return true
		default:
			return false
		}
	}
	return false
}

func (w *walker) object(p *plan, depth int) bool {
	var seen uint64      // the first members of a struct
	absent := p.needed   // those that were not met
	var others [8][]byte // names of other members, as they are written
	var rest map[string]bool
	n := 0
	w.pos++
	if w.peek() == '}' {
		w.pos++
		return w.complete(p, absent)
	}
	for {
		if w.peek() != '"' {
			return false
		}
		at := w.pos
		if !w.text() {
			return false
		}
		raw := w.data[at+1 : w.pos-1]
		name := raw
		if bytes.IndexByte(raw, '\\') >= 0 {
			var s string
			if json.Unmarshal(w.data[at:w.pos], &s) != nil {
				return false
			}
			name = []byte(s)
		}
		if w.peek() != ':' {
			return false
		}
		w.pos++
		elem, nulls := &anyPlan, true
		i := -1
		switch p.kind {
		case object:
			elem = &opaquePlan
			var exact bool
			if i, exact = p.find(name); i >= 0 && exact {
				elem, nulls = p.fields[i].plan, p.fields[i].nullable
				absent &^= 1 << i
			}
			if i >= 0 && !exact && !w.known {
				w.mask(at, len(raw))
			}
			if i >= 0 && !exact && w.known {
				w.err = fmt.Errorf("unknown member %q; it is called %q", name, p.fields[i].name)
				return false
			}
		case mapping:
			elem, nulls = p.elem, p.nulls
		}
		switch {
		case i >= 0 && i < 64:
			if seen&(1<<i) != 0 {
				return w.twice(p.fields[i].name)
			}
			seen |= 1 << i
		default:
			if i >= 0 { // the same for every case of its name
				name = []byte(p.fields[i].name)
			}
			for _, o := range others[:min(n, len(others))] {
				if bytes.Equal(o, name) {
					return w.twice(string(name))
				}
			}
			if n < len(others) {
				others[n] = name
			} else {
				if rest == nil {
					rest = map[string]bool{}
				}
				if rest[string(name)] {
					return w.twice(string(name))
				}
				rest[string(name)] = true
			}
			n++
		}
		if !w.mayBe(nulls, string(name)) || !w.value(elem, depth+1) {
			return false
		}
		switch w.peek() {
		case ',':
			w.pos++
		case '}':
			w.pos++
			return w.complete(p, absent)
		default:
			return false
		}
	}
}

var (
	anyPlan    = plan{kind: anything}
	opaquePlan = plan{}
)

// find returns the member of a name, and whether it is exactly that.
func (p *plan) find(name []byte) (i int, exact bool) {
	if p.exact != nil {
		if i, ok := p.exact[string(name)]; ok {
			return i, true
		}
	} else {
		for i := range p.fields {
			if p.fields[i].name == string(name) {
				return i, true
			}
		}
	}
	for i := range p.fields {
		if strings.EqualFold(p.fields[i].name, string(name)) {
			return i, false
		}
	}
	return -1, false
}

// mayBe refuses a null where the type has none.
func (w *walker) mayBe(null bool, name string) bool {
	if w.whole && !null && w.peek() == 'n' {
		w.err = fmt.Errorf("invalid type: null, expected `%s`", name)
		return false
	}
	return true
}

// complete refuses an object without a member that has no default.
func (w *walker) complete(p *plan, absent uint64) bool {
	if w.whole && absent != 0 {
		w.err = fmt.Errorf("missing field `%s`", p.fields[bits.TrailingZeros64(absent)].name)
		return false
	}
	return true
}

func (w *walker) twice(name string) bool {
	w.err = fmt.Errorf("duplicate field `%s`", name)
	return false
}

// mask gives the member whose name begins at a quote a name that nothing has.
func (w *walker) mask(at, n int) {
	if w.masked == nil {
		w.masked = bytes.Clone(w.data)
	}
	for i := range n {
		w.masked[at+1+i] = '~'
	}
}

// peek skips space and returns the next byte, 0 at the end.
func (w *walker) peek() byte {
	for w.pos < len(w.data) {
		switch c := w.data[w.pos]; c {
		case ' ', '\t', '\n', '\r':
			w.pos++
		default:
			return c
		}
	}
	return 0
}

// skip passes one value without looking into it.
func (w *walker) skip() bool {
	depth := 0
	for w.pos < len(w.data) {
		switch c := w.data[w.pos]; c {
		case '"':
			if !w.text() {
				return false
			}
		case '{', '[':
			depth++
			w.pos++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return false
			}
			w.pos++
		case ' ', '\t', '\n', '\r', ',', ':':
			if depth == 0 {
				return false
			}
			w.pos++
			continue
		default:
			for w.pos < len(w.data) && !ends[w.data[w.pos]] {
				w.pos++
			}
		}
		if depth == 0 {
			return true
		}
	}
	return false
}

// ends are the bytes that end a number or a word.
var ends = [256]bool{' ': true, '\t': true, '\n': true, '\r': true, ',': true, ':': true, ']': true, '}': true, '{': true, '[': true, '"': true}

// text passes a string; its opening quote is the next byte.
func (w *walker) text() bool {
	w.pos++
	for w.pos < len(w.data) {
		w.pos += plain(w.data[w.pos:])
		if w.pos >= len(w.data) {
			return false
		}
		if w.data[w.pos] == '"' {
			w.pos++
			return true
		}
		w.pos += 2 // an escape and what it escapes
	}
	return false
}

// plain counts the leading bytes that are neither a quote nor a backslash, eight at
// a time.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		word := binary.LittleEndian.Uint64(b[n:])
		q, e := word^(ones*'"'), word^(ones*'\\')
		if hit := ((q-ones) & ^q | (e-ones) & ^e) & highs; hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for n < len(b) && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}
