package app

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// shape is what a kind of message looks like over all its samples: for every path
// the JSON types seen there and in how many of its parents it was.
type shape struct {
	samples int
	types   map[string]map[string]bool
	seen    map[string]int // samples of the path's parent that had it
	parents map[string]int // samples of objects at the path
}

func newShape() *shape {
	return &shape{types: map[string]map[string]bool{}, seen: map[string]int{}, parents: map[string]int{}}
}

func (s *shape) add(raw json.RawMessage) {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		s.samples++
		s.walk("", v)
	}
}

func (s *shape) walk(path string, v any) {
	kind := jsonType(v)
	if s.types[path] == nil {
		s.types[path] = map[string]bool{}
	}
	s.types[path][kind] = true
	switch v := v.(type) {
	case map[string]any:
		path = variant(path, v)
		s.parents[path]++
		for k, child := range v {
			if open(path, k) {
				continue
			}
			s.seen[path+"."+k]++
			s.walk(path+"."+k, child)
		}
	case []any:
		for _, child := range v {
			s.walk(path+"[]", child)
		}
	}
}

// variant distinguishes the members of a tagged union.
func variant(path string, v map[string]any) string {
	if t, ok := v["type"].(string); ok {
		return path + "<" + t + ">"
	}
	return path
}

// open are places whose keys are data, not names.
func open(path, key string) bool {
	return strings.HasSuffix(path, ".answers") || strings.HasSuffix(path, ".readStates") || strings.HasSuffix(path, ".config") || strings.HasSuffix(path, ".origins")
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// differences says where got does not look like want: members want never has,
// members it always has that got lacks, and other types. A member that want only
// ever showed as null may have any type, and null is fine where want had it.
func differences(want, got *shape) []string {
	var out []string
	for path, types := range got.types {
		known := want.types[path]
		if known == nil {
			if parent, _ := cut(path); want.parents[parent] > 0 {
				out = append(out, "has "+path+", which the recorded server never sends")
			}
			continue
		}
		onlyNull := len(known) == 1 && known["null"]
		for kind := range types {
			if !known[kind] && kind != "null" && !onlyNull {
				out = append(out, fmt.Sprintf("%s is %s, recorded %v", path, kind, keys(known)))
			}
		}
	}
	for path, n := range want.seen {
		parent, _ := cut(path)
		always := n == want.parents[parent] && !(len(want.types[path]) == 1 && want.types[path]["null"])
		if always && !want.types[path]["null"] && got.parents[parent] > 0 && got.seen[path] < got.parents[parent] {
			out = append(out, "lacks "+path)
		}
	}
	sort.Strings(out)
	return out
}

func cut(path string) (parent, key string) {
	i := strings.LastIndex(path, ".")
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
