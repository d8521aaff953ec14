package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// scalars are the members of a decoded object that are no object, by the object's
// key and their own; ok is false when it holds an array or is too deep.
func scalars(in string, object map[string]any, depth int, into map[string]string) (ok bool) {
	if depth > deepest {
		return false
	}
	for k, v := range object {
		key := in + "." + k
		switch v := v.(type) {
		case map[string]any:
			if !scalars(k, v, depth+1, into) {
				return false
			}
		case []any:
			return false
		case string:
			into[key] = v
		default:
			into[key] = ""
		}
	}
	return true
}

// glanced also counts how often each member was shown.
func glanced(line []byte) (got map[string]string, shown map[string]int, ok bool) {
	got, shown = map[string]string{}, map[string]int{}
	word := func(b []byte) string { return Unquote([]byte(`"` + string(b) + `"`)) }
	ok = Glance(line, func(in, key, value []byte) {
		k := word(in) + "." + word(key)
		got[k] = Unquote(value)
		shown[k]++
	})
	return got, shown, ok
}

func TestGlance(t *testing.T) {
	got, _, ok := glanced([]byte(` {"a":"b", "n" : -1.5e3 ,"o":{"t":"say \"hi\"\\","u":"\u00e4ö","x":null} , "l":true}` + "\r"))
	want := map[string]string{".a": "b", ".n": "", "o.t": `say "hi"\`, "o.u": "äö", "o.x": "", ".l": ""}
	if !ok || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, ok)
	}
	for _, line := range []string{``, `{`, `[]`, `{"a":[1]}`, `{"a":"b"`, `{"a":"b"}}`, `{"a":"b" "c":1}`, `{"a"}`, `{"a":}`, `{"a":"b\"}`, `{"\u0061":"b"}`, `{"a":1`, `{}`,
		strings.Repeat(`{"a":`, 9) + `1` + strings.Repeat(`}`, 9)} {
		if got, _, ok := glanced([]byte(line)); ok {
			t.Errorf("%s: glanced as %v", line, got)
		}
	}
}

// FuzzGlance: a line of JSON is shown as encoding/json reads it, or left to it.
func FuzzGlance(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":"b"}`, ` { "a" : 1 , "b" : "c\\\"d" , "e" : {"x":["y","]"]}, "f":"\u00e4ö" } `, `{"a":null,"b":[1,{"c":"}"}],"d":"e"}`,
		`{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"u","itemId":"i","delta":"say \"hi\"\n"},"emittedAtMs":17}`,
		`{"type":"stream_event","event":{"delta":{"text":"one","type":"text_delta"},"index":1,"type":"content_block_delta"},"parent_tool_use_id":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, shown, ok := glanced(line)
		var object map[string]any
		if !ok || json.Unmarshal(line, &object) != nil {
			return
		}
		want := map[string]string{}
		if !scalars("", object, 1, want) {
			t.Fatalf("glanced at %v", object)
		}
		for k, v := range want { // of a key that comes twice either value may be the last
			if have, ok := got[k]; !ok || have != v && shown[k] < 2 {
				t.Errorf("%s is %q, want %q", k, have, v)
			}
		}
	})
}

// FuzzAlike: a line that is taken for one like another is glanced at as that one is,
// but for the values that may differ.
func FuzzAlike(f *testing.F) {
	f.Add([]byte(`{"a":"b","c":{"d":"e","f":1}}`), []byte(`{"a":"x\"y","c":{"d":"e","f":234}}`), uint8(0), uint8(2))
	f.Add([]byte(`{"a":"b","c":"d"}`), []byte(`{"a":"b","c":"d"} `), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, line, other []byte, one, two uint8) {
		type member struct{ in, key, value string }
		look := func(line []byte) (all []member, values [][]byte, ok bool) {
			ok = Glance(line, func(in, key, value []byte) {
				all = append(all, member{string(in), string(key), string(value)})
				values = append(values, value)
			})
			return all, values, ok
		}
		was, values, ok := look(line)
		if !ok || int(one) >= int(two) || int(two) >= len(was) {
			return
		}
		var a Alike
		if _, ok := a.Match(line); ok {
			t.Fatal("matched before it learnt")
		}
		a.Learn(line, values[one], values[two])
		line = append(line[:0:0], line...)
		if got, ok := a.Match(line); !ok || string(got[0]) != was[one].value || string(got[1]) != was[two].value {
			t.Fatalf("%s is not like itself: %q", line, got)
		}
		got, ok := a.Match(other)
		if !ok || !json.Valid(other) {
			return
		}
		is, _, plain := look(other)
		was[one].value, was[two].value = string(got[0]), string(got[1])
		if !plain || !slices.Equal(is, was) {
			t.Fatalf("%s became %v, is %v", other, was, is)
		}
	})
}
