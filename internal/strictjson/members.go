package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Value is a JSON text that was parsed. It is taken apart without decoding, for a
// program that passes a text on and has to be sure that its next reader finds the same.
type Value []byte

// maxParts bounds the members and elements of one value: what is kept of one is larger
// than the shortest one, so that a text of a list of digits takes many times its length.
const maxParts = 1 << 16

var errParts = fmt.Errorf("more than %d parts in one value", maxParts)

// Parse checks a text for grammar.
func Parse(data []byte) (Value, error) {
	if !json.Valid(data) {
		return nil, errors.New("invalid JSON")
	}
	return data, nil
}

// Member is a member of an object as it is written, Start being where its value begins in
// the text of the object.
type Member struct {
	Name  string
	Value Value
	Start int
}

// Members returns the members of an object. No two names may be equal, also not when case
// is ignored.
func (v Value) Members() ([]Member, error) {
	w := walker{data: v}
	if w.peek() != '{' {
		return nil, errors.New("must be an object")
	}
	var all []Member
	seen := map[string]bool{}
	for w.pos++; w.peek() != '}'; {
		if w.data[w.pos] == ',' {
			w.pos++
			w.peek()
		}
		at := w.pos
		w.text()
		var m Member
		if err := json.Unmarshal(v[at:w.pos], &m.Name); err != nil {
			return nil, err
		}
		folded := strings.ToLower(strings.ToUpper(m.Name)) // as EqualFold does: ſ is s
		if seen[folded] {
			w.twice(m.Name)
			return nil, w.err
		}
		seen[folded] = true
		w.peek() // the colon
		w.pos++
		m.Value, m.Start = w.part()
		if len(all) == maxParts {
			return nil, errParts
		}
		all = append(all, m)
	}
	return all, nil
}

// Elements returns the elements of a list.
func (v Value) Elements() ([]Value, error) {
	w := walker{data: v}
	if w.peek() != '[' {
		return nil, errors.New("must be a list")
	}
	var all []Value
	for w.pos++; w.peek() != ']'; {
		if w.data[w.pos] == ',' {
			w.pos++
		}
		part, _ := w.part()
		if len(all) == maxParts {
			return nil, errParts
		}
		all = append(all, part)
	}
	return all, nil
}

// part passes one value of a text that was parsed, and returns it.
func (w *walker) part() (Value, int) {
	w.peek()
	start := w.pos
	w.skip()
	return Value(w.data[start:w.pos]), start
}
