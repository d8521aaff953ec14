package strictjson

import (
	"encoding/json"
	"testing"
)

func TestMembers(t *testing.T) {
	text := ` { "a" : 1 , "\u0062":{"a":[1,{"a":"}"}]}, "c\"":"x\\", "d":[], "e":null } `
	want := [][2]string{{"a", "1"}, {"b", `{"a":[1,{"a":"}"}]}`}, {`c"`, `"x\\"`}, {"d", "[]"}, {"e", "null"}}
	got, err := Members([]byte(text))
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i, m := range got {
		if m.Name != want[i][0] || text[m.Start:m.End] != want[i][1] {
			t.Errorf("%q: %q", m.Name, text[m.Start:m.End])
		}
	}
	if got, err := Members([]byte("{}")); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMembersRefuses(t *testing.T) {
	for _, text := range []string{
		``, ` `, `[]`, `"a"`, `null`, `{"a":1}{}`, `{"a":1,}`, `{'a':1}`, `{"a":1/**/}`, `{"a":NaN}`,
		`{"a":1,"a":2}`, `{"a":1,"A":2}`, `{"a":1,"\u0061":2}`, `{"s":1,"ſ":2}`, `{"k":1,"K":2}`,
	} {
		if got, err := Members([]byte(text)); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// FuzzMembers: what Members finds is what encoding/json finds.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[1,"}"]}}`))
	f.Add([]byte(`{"\u0061":"\"","b":-1e3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Members(data)
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %v and %v", data, got, want)
		}
		for _, m := range got {
			if value, ok := want[m.Name]; !ok || string(value) != string(data[m.Start:m.End]) {
				t.Fatalf("%q: %q is %q, not %q", data, m.Name, data[m.Start:m.End], value)
			}
		}
	})
}
