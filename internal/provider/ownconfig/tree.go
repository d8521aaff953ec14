package ownconfig

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxDepth bounds how deep a directory is read; links may lead round.
const maxDepth = 8

// tree lays the files of a directory.
func (r *reader) tree(f File, dir string) error { return r.below(f, dir, "", 0) }

func (r *reader) below(f File, dir, rel string, depth int) error {
	from, err := r.resolve(filepath.Join(dir, rel))
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		at, err := r.resolve(filepath.Join(dir, name))
		if err != nil {
			r.note(Line{From: r.shown(filepath.Join(dir, name)), Fate: Refused, Why: reason(err)})
			continue
		}
		st, err := os.Stat(at)
		switch {
		case strings.HasPrefix(e.Name(), ".") || err != nil || slices.Contains(skipped, e.Name()):
		case st.IsDir() && depth < maxDepth:
			if err := r.below(f, dir, name, depth+1); err != nil {
				return err
			}
		case st.Mode().IsRegular() && (len(f.Ends) == 0 || slices.Contains(f.Ends, path.Ext(name))):
			r.leaf(f, filepath.Join(dir, name), path.Join(f.To, name))
		}
	}
	return nil
}

// skipped are directories that no instruction is in and that are large.
var skipped = []string{"node_modules", "__pycache__"}

func (r *reader) leaf(f File, at, to string) {
	from := r.shown(at)
	body, err := r.read(at)
	if err != nil {
		r.note(Line{From: from, Fate: Refused, Why: "cannot be read: " + reason(err)})
		return
	}
	if len(f.Keys) > 0 {
		f.To = to
		if err := r.settings(f, at, body); err != nil {
			r.note(Line{From: from, Fate: Refused, Why: "cannot be read: " + reason(err)})
		}
		return
	}
	if _, taken := r.Files[to]; taken {
		r.note(Line{From: from, Fate: Refused, Why: "the session has another file in its place"})
		return
	}
	var lines []Line
	if len(f.Front) > 0 && path.Ext(at) == ".md" {
		body, lines = front(f.Front, body, slices.Contains(r.Hooks, r.cli))
	}
	if !r.lay(Line{From: from, Fate: Passed}, to, body) {
		return
	}
	for _, l := range lines {
		l.From = from
		r.note(l)
	}
}

var (
	fence     = []byte("---")
	frontLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*)\s*:(.*)$`) })
	everyRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s+["']?\*["']?\s*:\s*["']?allow`) })
)

// front returns a Markdown text whose front matter has only keys that pass, and what was
// taken out. What is not a line of the simple form KEY: VALUE, with what is indented below
// it, does not pass.
func front(keys []Key, body []byte, consent bool) ([]byte, []Line) {
	lines := bytes.SplitAfter(body, []byte("\n"))
	if !bytes.Equal(bytes.TrimSpace(lines[0]), fence) {
		return body, nil
	}
	end := slices.IndexFunc(lines[1:], func(l []byte) bool { return bytes.Equal(bytes.TrimSpace(l), fence) })
	if end < 0 {
		return body, nil
	}
	w := &walk{keys: keys}
	out := slices.Clone(lines[0])
	var said []Line
	var row Key
	keep := false
	for _, l := range lines[1 : end+1] {
		text := strings.TrimRight(string(l), "\r\n")
		indented := strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "- ") || strings.TrimSpace(text) == ""
		if !indented {
			key, value := text, ""
			m := frontLine().FindStringSubmatch(text)
			if m != nil {
				key, value = m[1], strings.TrimSpace(m[2])
			}
			var found bool
			row, found, _ = w.row([]string{key})
			why := whyUnknown
			switch {
			case m == nil:
				key, found = "front matter", false
			case !found:
			case row.Fate == Refused:
				why = row.Why
			case row.How == ByConsent && !consent:
				why = whyConsent
			case row.How == General && value != "" && value != "ask" && value != "deny":
				why = whyProfile
			default:
				why = ""
			}
			if keep = why == ""; !keep {
				said = append(said, Line{Key: key, Fate: Refused, Why: why})
			}
		} else if keep && row.How == General && everyRule().MatchString(text) {
			said = append(said, Line{Key: row.Names + ".*", Fate: Refused, Why: whyProfile})
			continue
		}
		if keep {
			out = append(out, l...)
		}
	}
	for _, l := range lines[end+1:] {
		out = append(out, l...)
	}
	return out, said
}

// Pointer is a skill that has the name and the description of another, and leads to it. It
// keeps nothing of it that a CLI would obey without a question.
func Pointer(skill []byte, at string) []byte {
	head, _ := front([]Key{pass("name description")}, skill, false)
	lines := bytes.SplitAfter(head, []byte("\n"))
	end := 0
	if bytes.Equal(bytes.TrimSpace(lines[0]), fence) {
		end = slices.IndexFunc(lines[1:], func(l []byte) bool { return bytes.Equal(bytes.TrimSpace(l), fence) }) + 2
	}
	out := bytes.Join(lines[:max(end, 0)], nil)
	return append(slices.Clip(out), "\nThis skill is part of the project. Read "+at+" and the files next to it, and follow them.\n"...)
}
