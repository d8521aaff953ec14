package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Bounds of a login file and of one value in it.
const (
	maxLogin = 1 << 20
	maxValue = 64 << 10
)

// readLeft reads what an executor left in its credential directory, which the
// agent can write: only the directory above is trusted. It follows no link, waits
// for no pipe and reads no more than a login has.
func readLeft(auth, name string) ([]byte, error) {
	above, err := beneath.Open(filepath.Dir(auth))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	dir, err := above.Sub(filepath.Base(auth))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLogin+1))
	if err == nil && len(data) > maxLogin {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxLogin)
	}
	return data, err
}

// refreshed is the login that was given with the tokens of the one that an executor
// left, or why that one is not a refresh of it. Nothing else of what was left is in
// the result, not even its spelling.
func refreshed(provider string, given, left []byte) ([]byte, error) {
	before, err := decodeLogin(given)
	if err != nil {
		return nil, fmt.Errorf("the login that was given is not a JSON object: %w", err)
	}
	after, err := decodeLogin(left)
	if err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	merged, err := take(before, after, nil, table.Of(provider).Login.Tokens)
	if err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(merged, "", "  ")
	return append(out, '\n'), err
}

func decodeLogin(data []byte) (map[string]any, error) {
	if err := strictjson.Unmarshal(data, new(map[string]any)); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	if v == nil {
		return nil, errors.New("it is null")
	}
	return v, nil
}

// take walks both values at once and takes over what is a token.
func take(before, after any, path, fields []string) (any, error) {
	from, ok := before.(map[string]any)
	if ok {
		to, ok := after.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is no object any more", show(path))
		}
		out := map[string]any{}
		for name := range to {
			if _, known := from[name]; !known {
				return nil, fmt.Errorf("%s was added", show(append(path, name)))
			}
		}
		for name, was := range from {
			is, there := to[name]
			if !there {
				return nil, fmt.Errorf("%s was removed", show(append(path, name)))
			}
			v, err := take(was, is, append(path, name), fields)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
		return out, nil
	}
	switch {
	case reflect.DeepEqual(before, after):
		return before, nil
	case !isToken(path, fields):
		return nil, fmt.Errorf("%s was changed, which no refresh does", show(path))
	case reflect.TypeOf(before) != reflect.TypeOf(after) || !plausible(after):
		return nil, fmt.Errorf("%s holds no token any more", show(path))
	}
	return after, nil
}

func isToken(path, fields []string) bool {
	for _, f := range fields {
		names := strings.Split(f, ".")
		match := len(names) == len(path)
		for i := 0; match && i < len(names); i++ {
			match = names[i] == "*" || names[i] == path[i]
		}
		if match {
			return true
		}
	}
	return false
}

// plausible reports whether a value could be a token or a time: visible ASCII, or a
// whole number.
func plausible(v any) bool {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case json.Number:
		s = v.String()
		if strings.Trim(s, "0123456789") != "" || len(s) > 20 {
			return false
		}
	default:
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxValue
}

// show names a field for people; the names may be an agent's.
func show(path []string) string {
	s := fmt.Sprintf("%q", strings.Join(path, "."))
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return s
}

// put writes a file into a directory over whatever is there, a link, a pipe or a
// folder too.
func put(dir *beneath.Dir, name string, data []byte) error {
	fresh := name + ".new"
	if err := dir.RemoveAll(fresh); err != nil {
		return err
	}
	f, err := dir.Create(fresh, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if st, err := dir.Lstat(name); err == nil && st.Kind == beneath.Folder {
		if err := dir.RemoveAll(name); err != nil {
			return err
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return dir.Rename(fresh, name)
}
