package provider

import (
	"bytes"
	"unicode/utf8"

	"github.com/tholehq/thole/internal/strictjson"
)

// Glance walks a line of JSON that holds nothing but objects, strings, numbers and
// literals, which is what deltas look like, and shows each member that is no
// object: the key of the object it stands in (nil for the line itself), its own key
// and its value as it is written. Deltas are nearly all that a CLI writes, and decoding one
// costs ten times as much. It reports false for any other line, whose members it
// may have shown in part: that line is the decoder's. Of a line that is no JSON at
// all it promises nothing.
func Glance(line []byte, see func(in, key, value []byte)) bool {
	g := glance{b: line}
	return g.object(nil, 1, see) && len(bytes.TrimSpace(g.b)) == 0
}

// glance is what is left of a line.
type glance struct{ b []byte }

// deepest bounds the stack; deltas have three levels.
const deepest = 8

func (g *glance) object(in []byte, depth int, see func(in, key, value []byte)) bool {
	if depth > deepest || !g.take('{') {
		return false
	}
	for {
		key, ok := g.quoted()
		if !ok || bytes.IndexByte(key, '\\') >= 0 || !g.take(':') {
			return false
		}
		key = key[1 : len(key)-1]
		switch g.peek() {
		case '{':
			if !g.object(key, depth+1, see) {
				return false
			}
		case '[', 0:
			return false
		default:
			value, ok := g.value()
			if !ok {
				return false
			}
			see(in, key, value)
		}
		if !g.take(',') {
			return g.take('}')
		}
	}
}

// peek skips space and returns the next byte, 0 at the end.
func (g *glance) peek() byte {
	for len(g.b) > 0 {
		switch c := g.b[0]; c {
		case ' ', '\t', '\r', '\n':
			g.b = g.b[1:]
		default:
			return c
		}
	}
	return 0
}

func (g *glance) take(c byte) bool {
	if g.peek() != c {
		return false
	}
	g.b = g.b[1:]
	return true
}

// value takes what is no object and no array.
func (g *glance) value() (s []byte, ok bool) {
	if g.peek() == '"' {
		return g.quoted()
	}
	return g.bare()
}

// quoted takes a string with its quotes.
func (g *glance) quoted() (s []byte, ok bool) {
	if g.peek() != '"' {
		return nil, false
	}
	for end := 1; ; end++ {
		i := bytes.IndexByte(g.b[end:], '"')
		if i < 0 {
			return nil, false
		}
		end += i
		escapes := 0
		for g.b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			s, g.b = g.b[:end+1], g.b[end+1:]
			return s, true
		}
	}
}

// bare takes a number or a literal.
func (g *glance) bare() (s []byte, ok bool) {
	for i, c := range g.b {
		if c == ',' || c == '}' || c <= ' ' {
			s, g.b = g.b[:i], g.b[i:]
			return s, i > 0
		}
	}
	return nil, false
}

// Unquote is the text of a string as Glance shows it, "" for any other value.
func Unquote(value []byte) (s string) {
	if value[0] != '"' {
		return ""
	}
	if bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
		return string(value[1 : len(value)-1])
	}
	_ = strictjson.Unmarshal(value, &s)
	return s
}

// Alike knows a line that is as an earlier one but for some of its values, without
// looking at the rest: of one delta after another only the text differs, and an id
// or a time.
type Alike struct {
	fixed  [][]byte // the earlier line around these values
	values [][]byte
}

// Learn takes a line that was glanced at, and the values that may differ in the
// order in which they stand there.
func (a *Alike) Learn(line []byte, values ...[]byte) {
	a.fixed, a.values = a.fixed[:0], values
	at, whole := 0, bytes.Clone(line)
	for _, v := range values {
		begin := cap(line) - cap(v) // v is a piece of line
		a.fixed = append(a.fixed, whole[at:begin])
		at = begin + len(v)
	}
	a.fixed = append(a.fixed, whole[at:])
}

// Match returns the values of a line like the one that was learnt. They are valid
// until the next call.
func (a *Alike) Match(line []byte) (values [][]byte, ok bool) {
	g := glance{b: line}
	for i, part := range a.fixed {
		if i > 0 {
			if a.values[i-1], ok = g.value(); !ok {
				return nil, false
			}
		}
		if !bytes.HasPrefix(g.b, part) {
			return nil, false
		}
		g.b = g.b[len(part):]
	}
	return a.values, len(a.fixed) > 0 && len(g.b) == 0
}
