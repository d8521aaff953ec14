package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"unicode/utf8"
)

// Limits bound what one message may hold. Zero fields take the defaults.
type Limits struct {
	Bytes  int // whole message; default 64 MiB
	Depth  int // nested containers; default 128
	Values int // JSON values of every kind, keys not counted; default 262,144; negative: no limit
	// LastKeyWins accepts a key that occurs twice in one object, except among the
	// members of the envelope itself.
	LastKeyWins bool
	// WholeRunes refuses escapes of half a surrogate pair. They name no character, and read
	// as U+FFFD they make two different names one.
	WholeRunes bool
}

const (
	defaultBytes  = 64 << 20
	defaultDepth  = 128
	defaultValues = 256 << 10
)

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Depth == 0 {
		l.Depth = defaultDepth
	}
	if l.Values == 0 {
		l.Values = defaultValues
	}
	return l
}

// scanner checks a message against the grammar and the limits in one pass. It
// recurses once per container, so Limits.Depth also bounds its stack.
type scanner struct {
	data   []byte
	pos    int
	lim    Limits
	values int
	depth  int
	keys   [][]byte // keys of the open objects, innermost last
	err    *DecodeError
}

// A few keys are compared one by one; from here on an object gets a map, so that
// a hostile object costs no quadratic time.
const linearKeys = 16

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func (s *scanner) release() {
	clear(s.keys[:cap(s.keys)])
	*s = scanner{keys: s.keys[:0]}
	if cap(s.keys) <= 1024 {
		scanners.Put(s)
	}
}

func (s *scanner) fail(f Fault, format string, args ...any) bool {
	if s.err == nil {
		s.err = &DecodeError{Fault: f, Offset: s.pos, Detail: fmt.Sprintf(format, args...)}
	}
	return false
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek skips space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// value scans one value and leaves pos behind it.
func (s *scanner) value() bool {
	if s.values++; s.lim.Values > 0 && s.values > s.lim.Values {
		return s.fail(FaultTooMany, "more than %d JSON values", s.lim.Values)
	}
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c == '{':
		return s.object(func([]byte) bool { return s.value() }, !s.lim.LastKeyWins)
	case c == '[':
		return s.array()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.unexpected("a value")
}

func (s *scanner) unexpected(want string) bool {
	if s.pos >= len(s.data) {
		return s.fail(FaultSyntax, "unexpected end, expected %s", want)
	}
	return s.fail(FaultSyntax, "unexpected %q, expected %s", s.data[s.pos], want)
}

func (s *scanner) enter() bool {
	if s.depth++; s.depth > s.lim.Depth {
		return s.fail(FaultTooDeep, "nested deeper than %d", s.lim.Depth)
	}
	s.pos++
	return true
}

// object scans members; member gets each raw key and must scan its value.
func (s *scanner) object(member func(key []byte) bool, unique bool) bool {
	if !s.enter() {
		return false
	}
	base := len(s.keys)
	var seen map[string]struct{}
	defer func() { s.keys = s.keys[:base]; s.depth-- }()
	if s.peek() == '}' {
		s.pos++
		return true
	}
	for {
		if s.peek() != '"' {
			return s.unexpected("a key")
		}
		at := s.pos
		if !s.str() {
			return false
		}
		key := s.data[at+1 : s.pos-1]
		if unique {
			if bytes.IndexByte(key, '\\') >= 0 {
				k, err := unquote(s.data[at:s.pos])
				if err != nil {
					return s.fail(FaultSyntax, "bad key")
				}
				key = []byte(k)
			}
			if s.seen(key, base, &seen) {
				s.pos = at
				return s.fail(FaultDuplicate, "duplicate key %q", key)
			}
		}
		if s.peek() != ':' {
			return s.unexpected("':'")
		}
		s.pos++
		if !member(key) {
			return false
		}
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return true
		default:
			return s.unexpected("',' or '}'")
		}
	}
}

// seen records key and reports whether the object opened at base already has it.
func (s *scanner) seen(key []byte, base int, m *map[string]struct{}) bool {
	if *m != nil {
		if _, dup := (*m)[string(key)]; dup {
			return true
		}
		(*m)[string(key)] = struct{}{}
		return false
	}
	for _, k := range s.keys[base:] {
		if bytes.Equal(k, key) {
			return true
		}
	}
	s.keys = append(s.keys, key)
	if len(s.keys)-base > linearKeys {
		*m = make(map[string]struct{}, 4*linearKeys)
		for _, k := range s.keys[base:] {
			(*m)[string(k)] = struct{}{}
		}
	}
	return false
}

func (s *scanner) array() bool {
	if !s.enter() {
		return false
	}
	defer func() { s.depth-- }()
	if s.peek() == ']' {
		s.pos++
		return true
	}
	for {
		if !s.value() {
			return false
		}
		switch s.peek() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return true
		default:
			return s.unexpected("',' or ']'")
		}
	}
}

// str scans a string; the caller has seen its opening quote.
func (s *scanner) str() bool {
	s.pos++
	for {
		s.pos += plain(s.data[s.pos:])
		if s.pos >= len(s.data) {
			return s.fail(FaultSyntax, "unexpected end of string")
		}
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		default:
			return s.fail(FaultSyntax, "control character %q in string", c)
		}
	}
}

// plain counts the leading bytes that need no attention inside a string: no
// quote, no backslash, no control character. Eight at a time, since most of a
// busy connection is output text.
func plain(b []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		q, e := w^(ones*'"'), w^(ones*'\\')
		hit := ((w - ones*0x20) & ^w) | ((q - ones) & ^q) | ((e - ones) & ^e)
		if hit &= highs; hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for n < len(b) && b[n] >= 0x20 && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

func (s *scanner) escape() bool {
	if s.pos+1 >= len(s.data) {
		return s.fail(FaultSyntax, "unexpected end of string")
	}
	switch s.data[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
		if s.pos+6 > len(s.data) {
			return s.fail(FaultSyntax, "unexpected end of string")
		}
		for _, c := range s.data[s.pos+2 : s.pos+6] {
			if c|0x20 < 'a' && (c < '0' || c > '9') || c|0x20 > 'f' {
				return s.fail(FaultSyntax, "bad \\u escape")
			}
		}
		if s.lim.WholeRunes && s.data[s.pos+2]|0x20 == 'd' && s.data[s.pos+3] >= '8' {
			return s.pair()
		}
		s.pos += 6
		return true
	}
	return s.fail(FaultSyntax, "bad escape")
}

// pair passes the escapes of a surrogate pair; the first of them has been checked.
func (s *scanner) pair() bool {
	half := func(at int, from, to byte) bool {
		d := s.data[at+3] | 0x20
		return s.data[at+2]|0x20 == 'd' && from <= d && d <= to
	}
	low := s.pos + 6
	if !half(s.pos, '8', 'b') || low+6 > len(s.data) || s.data[low] != '\\' || s.data[low+1] != 'u' || !half(low, 'c', 'f') {
		return s.fail(FaultSyntax, "half a surrogate pair")
	}
	s.pos = low
	for _, c := range s.data[low+4 : low+6] {
		if c|0x20 < 'a' && (c < '0' || c > '9') || c|0x20 > 'f' {
			return s.fail(FaultSyntax, "bad \\u escape")
		}
	}
	s.pos += 6
	return true
}

func (s *scanner) digits() bool {
	from := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == from {
		return s.unexpected("a digit")
	}
	return true
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.data) && s.data[s.pos] == c }

func (s *scanner) number() bool {
	if s.at('-') {
		s.pos++
	}
	if s.at('0') {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.at('.') {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if s.at('e') || s.at('E') {
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) literal(word string) bool {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return s.unexpected("a value")
	}
	s.pos += len(word)
	return true
}

// start prepares the scanner for one message and makes the checks that need no
// grammar.
func (s *scanner) start(data []byte, lim Limits) bool {
	s.data, s.lim = data, lim.withDefaults()
	if len(data) > s.lim.Bytes {
		return s.fail(FaultTooLarge, "message of %d bytes is over the limit of %d", len(data), s.lim.Bytes)
	}
	if !utf8.Valid(data) {
		return s.fail(FaultSyntax, "invalid UTF-8")
	}
	return true
}
