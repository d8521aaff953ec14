package jsonrpc

import (
	"errors"
	"math"
	"strconv"

	"github.com/tholehq/thole/internal/strictjson"
)

// ID names a request. It is a string or a signed 64-bit integer, comparable, and
// always echoed with the type it came with: 1 and "1" are different ids. The zero
// ID is no id.
type ID struct {
	kind idKind
	num  int64
	str  string
}

type idKind uint8

const (
	idNone idKind = iota
	idInt
	idString
)

var errBadID = errors.New("id must be a string or a 64-bit integer")

// IntID returns the integer id n.
func IntID(n int64) ID { return ID{kind: idInt, num: n} }

// StringID returns the string id s.
func StringID(s string) ID { return ID{kind: idString, str: s} }

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.kind == idNone }

// String is for logs; it does not distinguish 1 from "1".
func (id ID) String() string {
	if id.kind == idInt {
		return strconv.FormatInt(id.num, 10)
	}
	return id.str
}

// Int returns the integer and whether the id is one.
func (id ID) Int() (int64, bool) { return id.num, id.kind == idInt }

// MarshalJSON writes the id with its type; no id is null.
func (id ID) MarshalJSON() ([]byte, error) { return id.append(nil), nil }

// UnmarshalJSON refuses null, fractions and integers beyond 64 bits.
func (id *ID) UnmarshalJSON(data []byte) error {
	v, err := parseID(data)
	if err != nil {
		return err
	}
	*id = v
	return nil
}

func (id ID) append(dst []byte) []byte {
	switch id.kind {
	case idInt:
		return strconv.AppendInt(dst, id.num, 10)
	case idString:
		return appendString(dst, id.str)
	}
	return append(dst, "null"...)
}

func parseID(raw []byte) (ID, error) {
	if len(raw) == 0 {
		return ID{}, errBadID
	}
	if raw[0] == '"' {
		s, err := unquote(raw)
		if err != nil {
			return ID{}, errBadID
		}
		return StringID(s), nil
	}
	n, ok := parseInt(raw)
	if !ok {
		return ID{}, errBadID
	}
	return IntID(n), nil
}

// parseInt reads a JSON integer without fraction or exponent. The scanner has
// already refused leading zeros.
func parseInt(raw []byte) (int64, bool) {
	neg := false
	if len(raw) > 0 && raw[0] == '-' {
		neg, raw = true, raw[1:]
	}
	if len(raw) == 0 || len(raw) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case neg && n <= 1<<63:
		return -int64(n), true
	case !neg && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}

// unquote turns a raw JSON string, quotes included, into its value.
func unquote(raw []byte) (string, error) {
	body := raw[1 : len(raw)-1]
	for _, c := range body {
		if c == '\\' {
			var s string
			err := strictjson.Unmarshal(raw, &s)
			return s, err
		}
	}
	return string(body), nil
}
