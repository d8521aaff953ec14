package ownconfig

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// object is a table of settings. It keeps the order of its members: some CLIs take the
// last rule that matches.
type object struct {
	names []string
	by    map[string]any
}

func newObject() *object { return &object{by: map[string]any{}} }

func (o *object) set(name string, v any) {
	if _, is := o.by[name]; !is {
		o.names = append(o.names, name)
	}
	o.by[name] = v
}

func (o *object) remove(name string) {
	delete(o.by, name)
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
}

// at makes the objects of a path and returns the last.
func (o *object) at(path []string) *object {
	for _, name := range path {
		sub, ok := o.by[name].(*object)
		if !ok {
			sub = newObject()
			o.set(name, sub)
		}
		o = sub
	}
	return o
}

// put sets what is at a path. Objects are merged, of anything else the last counts.
func (o *object) put(path []string, v any) {
	last := len(path) - 1
	o = o.at(path[:last])
	was, is := o.by[path[last]].(*object)
	if now, also := v.(*object); is && also {
		for _, name := range now.names {
			was.put([]string{name}, now.by[name])
		}
		return
	}
	o.set(path[last], v)
}

// MarshalJSON keeps the order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(o.by[name])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain is the object as maps, for a format in which order means nothing.
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		out := map[string]any{}
		for name, one := range v.by {
			out[name] = plain(one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = plain(one)
		}
		return out
	}
	return v
}

// ordered is the reverse.
func ordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := newObject()
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out.set(name, ordered(v[name]))
		}
		return out
	case []map[string]any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = ordered(one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = ordered(one)
		}
		return out
	}
	return v
}

// decode reads settings by their file's name.
func decode(name string, body []byte) (*object, error) {
	if strings.HasSuffix(name, ".toml") {
		all := map[string]any{}
		if err := toml.Unmarshal(body, &all); err != nil {
			return nil, err
		}
		return ordered(all).(*object), nil
	}
	v, err := strictjson.Parse(Uncommented(body))
	if err != nil {
		return nil, err
	}
	out, err := fromJSON(v)
	if err != nil {
		return nil, err
	}
	o, ok := out.(*object)
	if !ok {
		return nil, thole.Errorf(thole.CodeInvalid, "not an object")
	}
	return o, nil
}

func fromJSON(v strictjson.Value) (any, error) {
	raw := bytes.TrimSpace(v)
	switch {
	case bytes.HasPrefix(raw, []byte("{")):
		members, err := v.Members()
		if err != nil {
			return nil, err
		}
		out := newObject()
		for _, m := range members {
			one, err := fromJSON(m.Value)
			if err != nil {
				return nil, err
			}
			out.set(m.Name, one)
		}
		return out, nil
	case bytes.HasPrefix(raw, []byte("[")):
		elements, err := v.Elements()
		if err != nil {
			return nil, err
		}
		out := make([]any, len(elements))
		for i, e := range elements {
			if out[i], err = fromJSON(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	var out any
	err := strictjson.Unmarshal(raw, &out)
	if _, number := out.(float64); number {
		return json.Number(raw), err // as it was written
	}
	return out, err
}

// encode writes settings for a file.
func encode(name string, o *object) ([]byte, error) {
	if !strings.HasSuffix(name, ".toml") {
		return json.MarshalIndent(o, "", "  ")
	}
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	e.Indent = ""
	err := e.Encode(plain(o))
	return b.Bytes(), err
}

// Uncommented is JSON without the comments and the trailing commas that some CLIs allow in
// theirs. Each is replaced by spaces, so that places in errors stay true.
func Uncommented(text []byte) []byte {
	out := slices.Clone(text)
	comma := -1
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case c == '/' && i+1 < len(out) && out[i+1] == '*':
			end := bytes.Index(out[i+2:], []byte("*/"))
			stop := len(out)
			if end >= 0 {
				stop = i + 2 + end + 2
			}
			for ; i < stop; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c > ' ':
			comma = -1
		}
	}
	return out
}

// read returns a regular file of the user that is not longer than it may be, and that the
// agent does not write.
func (r *reader) read(path string) ([]byte, error) {
	at, err := r.resolve(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, thole.Errorf(thole.CodeInvalid, "not a regular file of at most %d bytes", maxFile)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// maxLinks bounds the links on the way to a file.
const maxLinks = 40

// resolve follows the links of a path one by one. None of them may lie in the directory
// that the agent writes: it would lead to any file of the user.
func (r *reader) resolve(path string) (string, error) {
	if r.Written == "" {
		return path, nil
	}
	at, rest, links := "/", strings.Split(filepath.Clean(path), "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" {
			continue
		}
		next := filepath.Join(at, name)
		if rel, err := filepath.Rel(r.Written, next); err == nil && filepath.IsLocal(rel) {
			return "", thole.Errorf(thole.CodeForbidden, "it is in the directory that the thread writes in place")
		}
		to, err := os.Readlink(next)
		if err != nil { // not a link
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", thole.Errorf(thole.CodeInvalid, "too many links")
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at, nil
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
