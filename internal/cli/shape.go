package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tholehq/thole/protocol/app"
)

// What --json prints has one shape: a bare array or object, names in snake_case, times in
// RFC 3339. Types of the thread contract have Codex's names and words and count seconds; they
// are converted here, at the edge. Documents of users and agents pass as they are.

// verbatim are members whose values are documents of others.
var verbatim = map[string]bool{
	"metadata": true, "arguments": true, "result": true, "input": true, "output": true, "schema": true, "structured_content": true,
	"output_schema": true, "content": true, "raw": true, "env": true, "answers": true, "proof": true,
}

// shaped is v as --json prints it.
func shaped(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := reshape(dec, &out, ""); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// reshape copies one value, which is the member called key.
func reshape(dec *json.Decoder, out *bytes.Buffer, key string) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		out.WriteRune(rune(t))
		for first := true; dec.More(); first = false {
			if !first {
				out.WriteByte(',')
			}
			if t == '[' {
				err = reshape(dec, out, "")
			} else {
				err = reshapeMember(dec, out)
			}
			if err != nil {
				return err
			}
		}
		end, err := dec.Token()
		if err == nil {
			out.WriteRune(rune(end.(json.Delim)))
		}
		return err
	case json.Number:
		if at, ok := stamp(key, t); ok {
			return encode(out, at)
		}
		out.WriteString(t.String())
		return nil
	default:
		if key == "status" && t == app.TurnInProgress {
			t = "running"
		}
		return encode(out, t)
	}
}

func reshapeMember(dec *json.Decoder, out *bytes.Buffer) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	key := t.(string)
	name := snake(strings.TrimSuffix(key, "Ms"))
	if !strings.HasSuffix(key, "AtMs") {
		name = snake(key)
	}
	if err := encode(out, name); err != nil {
		return err
	}
	out.WriteByte(':')
	if verbatim[name] {
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return err
		}
		out.Write(v)
		return nil
	}
	return reshape(dec, out, key)
}

func encode(out *bytes.Buffer, v any) error {
	b, err := json.Marshal(v)
	out.Write(b)
	return err
}

// camel is a name of the thread contract; what users name, as a path or a variable, is not.
var camel = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]*([A-Z][a-z0-9]*)+$`) })

func snake(name string) string {
	if !camel().MatchString(name) {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// stamp converts a time of the thread contract: seconds, or milliseconds where the name says so.
func stamp(key string, n json.Number) (time.Time, bool) {
	v, err := n.Int64()
	switch {
	case err != nil:
	case strings.HasSuffix(key, "AtMs"):
		return time.UnixMilli(v).UTC(), true
	case strings.HasSuffix(key, "At") && camel().MatchString(key):
		return time.Unix(v, 0).UTC(), true
	}
	return time.Time{}, false
}

// writeJSON prints one value on a line.
func writeJSON(w io.Writer, v any) error {
	b, err := shaped(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// ids are what -q prints of a value: the id, else the name, of it or of each in a list.
func ids(v any) (out []string) {
	b, err := shaped(v)
	if err != nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		list = []json.RawMessage{b}
	}
	for _, one := range list {
		if id := idOf(one); id != "" {
			out = append(out, id)
		}
	}
	return out
}

// idOf is the member called id, else the first that ends in _id, else the one that names
// the thing.
func idOf(object json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	var id, name string
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return ""
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return ""
		}
		var s string
		key := t.(string)
		isText := json.Unmarshal(v, &s) == nil && s != ""
		switch {
		case isText && key == "id":
			return s
		case isText && id == "" && strings.HasSuffix(key, "_id"):
			id = s
		case isText && name == "" && (key == "name" || key == "key" || key == "path" || key == "url"):
			name = s
		case id == "" && key == "thread" && len(v) > 0 && v[0] == '{':
			id = idOf(v)
		}
	}
	if id != "" {
		return id
	}
	return name
}
