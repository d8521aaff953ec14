package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Sandbox *string `json:"sandbox"`
	Keep    string  `json:"keep,omitempty"`
}

type base struct {
	Kind  string `json:"kind"`
	Depth int    `json:"depth"`
}

type tree struct {
	base
	Name   string            `json:"name"`
	Inner  inner             `json:"inner"`
	More   []*inner          `json:"more"`
	By     map[string]inner  `json:"by"`
	Env    map[string]string `json:"env"`
	Any    any               `json:"any"`
	Raw    json.RawMessage   `json:"raw"`
	At     time.Time         `json:"at"`
	Bytes  []byte            `json:"bytes"`
	Below  *tree             `json:"below"`
	Depth  string            `json:"depth"` // hides that of base
	Plain  bool
	Hidden string `json:"-"`
}

func TestMembersAreKnownByTheirExactName(t *testing.T) {
	box, none := "on", (*string)(nil)
	for text, want := range map[string]any{
		`{"inner":{"sandbox":"on","Sandbox":null}}`:      "duplicate field `sandbox`",
		`{"inner":{"Sandbox":null,"sandbox":"on"}}`:      "duplicate field `sandbox`",
		`{"inner":{"sandbox":"on","sandbox":null}}`:      "duplicate field `sandbox`",
		`{"inner":{"sandbox":"on","sand\u0062ox":null}}`: "duplicate field `sandbox`",
		`{"inner":{"sandbox":"on","ſandbox":null}}`:      "duplicate field `sandbox`",
		`{"inner":{"sandbox":"on","\u017Fandbox":null}}`: "duplicate field `sandbox`",
		`{"inner":{"SANDBOX":"off","Sandbox":"off"}}`:    "duplicate field `sandbox`",
		`{"inner":{"x":1,"x":2}}`:                        "duplicate field `x`",
		`{"inner":{"Sandbox":"off"}}`:                    tree{},
		`{"inner":{"sand\u0062ox":"on"}}`:                tree{Inner: inner{Sandbox: &box}},
		`{"inner":{"\u0053andbox":"off"}}`:               tree{},
		`{"Inner":{"sandbox":"off"}}`:                    tree{},
		`{"INNER":{"sandbox":"off"},"name":"n"}`:         tree{Name: "n"},
		`{"more":[{"Sandbox":"off"},{"KEEP":"x"},null]}`: tree{More: []*inner{{}, {}, nil}},
		`{"more":[{},{"keep":"a","Keep":"b"}]}`:          "duplicate field `keep`",
		`{"by":{"A":{"KEEP":"x"},"a":{"keep":"y"}}}`:     tree{By: map[string]inner{"A": {}, "a": {Keep: "y"}}},
		`{"by":{"a":{},"a":{}}}`:                         "duplicate field `a`",
		`{"env":{"Path":"1","PATH":"2"}}`:                tree{Env: map[string]string{"Path": "1", "PATH": "2"}},
		`{"env":{"A":"1","A":"2"}}`:                      "duplicate field `A`",
		`{"any":{"a":[{"b":1,"b":2}]}}`:                  "duplicate field `b`",
		`{"any":{"a":1,"A":2}}`:                          tree{Any: map[string]any{"a": 1.0, "A": 2.0}},
		`{"raw":{"a":1,"a":2}}`:                          tree{Raw: json.RawMessage(`{"a":1,"a":2}`)}, // for who reads it
		`{"Kind":"x","kind":"k"}`:                        "duplicate field `kind`",
		`{"KIND":"x"}`:                                   tree{},
		`{"kind":"k","depth":"d"}`:                       tree{base: base{Kind: "k"}, Depth: "d"},
		`{"plain":true}`:                                 tree{},
		`{"Plain":true}`:                                 tree{Plain: true},
		`{"hidden":"x","Hidden":"y"}`:                    tree{},
		`{"below":{"below":{"NAME":"x","name":"y"}}}`:    "duplicate field `name`",
		`{"inner":{"sandbox":null}}`:                     tree{Inner: inner{Sandbox: none}},
		` { "name" : "a" , "NAME" : "b" } `:              "duplicate field `name`",
		`{"name":"a"} {"name":"b"}`:                      "invalid character '{' after top-level value",
		`{"name":"a"`:                                    "unexpected end of JSON input",
		`{"bytes":"AAAA","Bytes":"BBBB"}`:                "duplicate field `bytes`",
		`{"more":{"keep":{"a":1,"a":2}}}`:                "duplicate field `a`",
	} {
		var got tree
		err := Unmarshal([]byte(text), &got)
		if want, ok := want.(string); ok {
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
			if !reflect.DeepEqual(got, tree{}) {
				t.Errorf("%s: refused, and obeyed: %+v", text, got)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestUnknownMembersAreRefusedWhereAsked(t *testing.T) {
	for _, text := range []string{`{"Keep":"x"}`, `{"other":1}`, `{"keep":"a","KEEP":"b"}`, `{} {}`, `{"keep":"a"}x`} {
		var v inner
		if err := UnmarshalKnown([]byte(text), &v); err == nil || v.Keep == "x" {
			t.Errorf("%s: taken as %+v", text, v)
		}
	}
	var v inner
	if err := ReadKnown(strings.NewReader(`{"keep":"x"}`+"\n"), &v); err != nil || v.Keep != "x" {
		t.Errorf("%+v, %v", v, err)
	}
	if err := Read(strings.NewReader(" "), &v); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}

func TestManyMembersAndDeepOnes(t *testing.T) {
	var many strings.Builder
	many.WriteString(`{"env":{`)
	for i := range 5000 {
		if i > 0 {
			many.WriteByte(',')
		}
		many.WriteString(`"k` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String() + `":""`)
	}
	var v tree
	if err := Unmarshal([]byte(many.String()+`}}`), &v); err != nil || len(v.Env) != 5000 {
		t.Errorf("%d, %v", len(v.Env), err)
	}
	if err := Unmarshal([]byte(many.String()+`,"kxi8ns":""}}`), &v); err == nil {
		t.Error("a duplicate among many is taken")
	}
	for _, text := range []string{
		`{"any":` + strings.Repeat("[", 1<<20), `{"any":` + strings.Repeat(`{"a":`, 1<<20), strings.Repeat(`{"below":`, 1<<20),
		`{"raw":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`, `{"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	} {
		if err := Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%.12s… is taken", text)
		}
	}
}

// FuzzUnmarshal compares with a reading by tokens that knows names only exactly.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{
		`{"inner":{"sandbox":"on","Sandbox":null}}`, `{"more":[{"KEEP":"x"}],"by":{"A":{"Keep":1}},"any":[{"a":{}}]}`,
		`{"sand\u0062ox":1,"below":{"Below":{}}}`, `{"raw":{"Raw":[1,2]},"at":"2026-01-01T00:00:00Z"}`, `[]`, `"x"`, `{"kind":"\"","K\u0131nd":"\\"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want tree
		err := Unmarshal(data, &got)
		plain, same := exactly(data, reflect.TypeFor[tree]())
		if !same {
			if err == nil {
				t.Fatalf("%q: a duplicate is taken", data)
			}
			return
		}
		werr := json.Unmarshal(plain, &want)
		if (err == nil) != (werr == nil) {
			t.Fatalf("%q: %v; by tokens %q: %v", data, err, plain, werr)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %+v; by tokens %q: %+v", data, got, plain, want)
		}
	})
}

// exactly rewrites a text without the members that t does not know exactly; it
// reports whether there was no duplicate. A text that is no JSON stays.
func exactly(data []byte, t reflect.Type) ([]byte, bool) {
	if !json.Valid(data) {
		return data, true
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	data = bytes.TrimSpace(data)
	if t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[time.Time]() || data[0] != '{' && data[0] != '[' {
		return data, true
	}
	anyType := reflect.TypeFor[any]()
	if data[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(data, &list) != nil {
			return data, true
		}
		elem := anyType
		if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
			elem = t.Elem()
		} else if t.Kind() == reflect.Slice || t.Kind() == reflect.String || t.Kind() == reflect.Bool {
			return data, true
		}
		for i := range list {
			var ok bool
			if list[i], ok = exactly(list[i], elem); !ok {
				return nil, false
			}
		}
		out, err := json.Marshal(list)
		return out, err == nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	_, _ = dec.Token()
	var out bytes.Buffer
	out.WriteByte('{')
	var names []string
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return data, true
		}
		name := tok.(string)
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return data, true
		}
		elem, like := anyType, name
		switch {
		case t.Kind() == reflect.Map:
			elem = t.Elem()
		case t.Kind() == reflect.Struct:
			elem = nil
			for _, f := range reflect.VisibleFields(t) {
				tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if tag == "" {
					tag = f.Name
				}
				if f.Anonymous || tag == "-" || len(f.Index) > 1 && tag == "depth" {
					continue
				}
				if tag == name {
					elem = f.Type
				}
				if strings.EqualFold(tag, name) {
					like = tag
				}
			}
		case t.Kind() == reflect.String, t.Kind() == reflect.Bool, t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
			return data, true
		}
		for _, n := range names {
			if n == like {
				return nil, false
			}
		}
		names = append(names, like)
		if elem == nil {
			continue
		}
		raw, ok := exactly(raw, elem)
		if !ok {
			return nil, false
		}
		key, _ := json.Marshal(name)
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(raw)
	}
	out.WriteByte('}')
	return out.Bytes(), true
}

var sample = []byte(`{"kind":"command","name":"process/start","inner":{"sandbox":"workspace-write","keep":"` + strings.Repeat("some text ", 20) +
	`"},"more":[{"keep":"a"},{"keep":"b"}],"env":{"PATH":"/usr/bin:/bin","HOME":"/root","TERM":"xterm","LANG":"C.UTF-8"},"raw":{"a":[1,2,3]},"at":"2026-01-01T00:00:00Z"}`)

// BenchmarkUnmarshal reads by turns with and without exact names and logs the best
// of each, because a machine that does other things slows both.
func BenchmarkUnmarshal(b *testing.B) {
	long, _ := json.Marshal(tree{Name: strings.Repeat("output of a process\n", 3000)})
	for name, text := range map[string][]byte{"small": sample, "64KiB": long} {
		b.Run(name, func(b *testing.B) {
			best := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				for i, read := range []func([]byte, any) error{Unmarshal, json.Unmarshal} {
					var v tree
					begun := time.Now()
					if err := read(text, &v); err != nil {
						b.Fatal(err)
					}
					best[i] = min(best[i], time.Since(begun))
				}
			}
			b.ReportMetric(float64(best[0].Nanoseconds()), "strict-ns")
			b.ReportMetric(float64(best[1].Nanoseconds()), "encoding-ns")
		})
	}
}

// What is wrong is said in the words of JSON, once, with the way to the member.
func TestMismatchesAreSaidInWordsOfJSON(t *testing.T) {
	type inner struct {
		ReadOnly *bool          `json:"read_only"`
		Names    []string       `json:"names"`
		Counts   map[string]int `json:"counts"`
	}
	type outer struct {
		Policy inner `json:"policy"`
	}
	for text, want := range map[string]string{
		`{"policy":{"read_only":"yes"}}`:   "policy.read_only is string where a boolean belongs",
		`{"policy":{"names":1}}`:           "policy.names is number where a sequence belongs",
		`{"policy":{"counts":{"a":"no"}}}`: "policy.counts is string where a number belongs",
		`{"policy":[]}`:                    "policy is array where an object belongs",
		`7`:                                "number where an object belongs",
	} {
		for name, unmarshal := range map[string]func([]byte, any) error{"Unmarshal": Unmarshal, "UnmarshalKnown": UnmarshalKnown} {
			var v outer
			err := unmarshal([]byte(text), &v)
			var wrong *json.UnmarshalTypeError
			if err == nil || err.Error() != want || !errors.As(err, &wrong) {
				t.Errorf("%s of %s says %v, want %s", name, text, err, want)
			}
		}
	}
}
