package ownconfig

import (
	"path/filepath"
	"slices"
	"strings"
)

// settings merges what passes of a file of settings into the session's.
func (r *reader) settings(f File, path string, body []byte) error {
	all, err := decode(path, body)
	if err != nil {
		return unreadable(err)
	}
	to := r.merged[f.To]
	if to == nil {
		to = newObject()
		r.merged[f.To] = to
	}
	w := &walk{reader: r, keys: f.Keys, dir: filepath.Dir(path), line: Line{From: r.shown(path), To: f.To}, out: to, dropped: map[string]string{}}
	w.object(nil, nil, all)
	for at, why := range w.dropped {
		w.drop(at, why)
	}
	return nil
}

// walk goes through one file.
type walk struct {
	*reader
	keys []Key
	dir  string // of the file
	line Line   // of each key
	out  *object
	// dropped are paths of which a part cannot pass and which are nothing without it.
	dropped map[string]string
}

// object takes the members of an object. rel is where it is for the table, at where it is
// in the file: a profile has the keys of the top.
func (w *walk) object(at, rel []string, o *object) {
	for _, name := range o.names {
		w.value(append(slices.Clone(at), name), append(slices.Clone(rel), name), o.by[name])
	}
}

func (w *walk) value(at, rel []string, v any) {
	row, found, above := w.row(rel)
	sub, isObject := v.(*object)
	switch {
	case found && row.Fate == Passed:
		w.pass(at, v)
	case found && row.Names == "*":
		if !slices.ContainsFunc(w.Lines, func(l Line) bool { return l.From == w.line.From && l.Key == row.Names }) {
			w.refuse([]string{row.Names}, row.Why)
		}
	case found && row.Fate == Refused:
		w.refuse(at, row.Why)
	case found:
		hows[row.How].take(w, at, v)
	case above && isObject:
		w.object(at, rel, sub)
	default:
		w.refuse(at, whyUnknown)
	}
}

func (w *walk) pass(at []string, v any) {
	if holdsSecret(v) {
		w.refuse(at, "looks like a secret")
		return
	}
	w.out.put(at, v)
	w.say(at, Passed, "")
}

func (w *walk) refuse(at []string, why string) { w.say(at, Refused, why) }

func (w *walk) say(at []string, fate Fate, why string) {
	l := w.line
	l.Key, l.Fate, l.Why = strings.Join(at, "."), fate, why
	if fate == Refused {
		l.To = ""
	}
	w.note(l)
}

// row finds the row of a path. above says that rows exist below it, which count before one
// that fits the path itself less exactly.
func (w *walk) row(path []string) (row Key, found, above bool) {
	best, below := -1, -1
	for _, k := range w.keys {
		for _, name := range strings.Fields(k.Names) {
			parts := strings.Split(name, ".")
			exact, fits := match(parts, path)
			if !fits {
				continue
			}
			if len(parts) > len(path) {
				below = max(below, exact)
			} else if exact > best {
				row, best = k, exact
			}
		}
	}
	return row, best >= 0 && best >= below, below >= 0
}

// match compares a row's path with one as far as the shorter goes, and counts the names
// that are equal and not any.
func match(row, path []string) (exact int, fits bool) {
	if len(row) < len(path) {
		return 0, false
	}
	for i, name := range path {
		switch row[i] {
		case name:
			exact++
		case "*":
		default:
			return 0, false
		}
	}
	return exact, true
}

// drop takes out what is at a path, and corrects what was said of it.
func (w *walk) drop(at, why string) {
	parts := strings.Split(at, "\x00")
	key := strings.Join(parts, ".")
	last := len(parts) - 1
	w.out.at(parts[:last]).remove(parts[last])
	w.Lines = slices.DeleteFunc(w.Lines, func(l Line) bool {
		return l.From == w.line.From && strings.HasPrefix(l.Key, key+".") && l.Fate != Refused
	})
	w.refuse(parts, why)
}

// finish writes the settings.
func (r *reader) finish(t Table) {
	if t.Tail != nil {
		t.Tail(r)
	}
	for to, o := range r.merged {
		if len(o.names) == 0 {
			continue // what a CLI has without the user's is not always an empty object
		}
		body, err := encode(to, o)
		if err != nil {
			r.note(Line{From: to, Fate: Refused, Why: "cannot be written: " + err.Error()})
			continue
		}
		r.Files[to] = body
	}
}
