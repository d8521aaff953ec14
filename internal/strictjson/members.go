package strictjson

import (
	"encoding/json"
	"errors"
	"strings"
)

// Member is a member of an object as it is written.
type Member struct {
	Name       string
	Start, End int // of the value in the text
}

// Members splits an object into its members without decoding them, for whoever passes a
// text on and has to be sure that its next reader finds the same members. The whole text
// is checked for grammar. No two names may be equal, also not when case is ignored.
func Members(data []byte) ([]Member, error) {
	if !json.Valid(data) {
		return nil, errors.New("invalid JSON")
	}
	w := walker{data: data}
	if w.peek() != '{' {
		return nil, errors.New("JSON is not an object")
	}
	w.pos++
	var all []Member
	seen := map[string]bool{}
	for w.peek() != '}' {
		if w.data[w.pos] == ',' {
			w.pos++
			w.peek()
		}
		at := w.pos
		w.text()
		var m Member
		if err := json.Unmarshal(data[at:w.pos], &m.Name); err != nil {
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
		w.peek()
		m.Start = w.pos
		w.skip()
		m.End = w.pos
		all = append(all, m)
	}
	return all, nil
}
