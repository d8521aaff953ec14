package strictjson

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestMembers(t *testing.T) {
	text := ` { "a" : 1 , "\u0062":{"a":[1,{"a":"}"}]}, "c\"":"x\\", "d":[], "e":null } `
	want := [][2]string{{"a", "1"}, {"b", `{"a":[1,{"a":"}"}]}`}, {`c"`, `"x\\"`}, {"d", "[]"}, {"e", "null"}}
	got, err := parsed(t, text).Members()
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i, m := range got {
		if m.Name != want[i][0] || string(m.Value) != want[i][1] || text[m.Start:m.Start+len(m.Value)] != want[i][1] {
			t.Errorf("%q: %q at %d", m.Name, m.Value, m.Start)
		}
	}
	if got, err := parsed(t, "{ }").Members(); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func parsed(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMembersRefuses(t *testing.T) {
	for _, text := range []string{
		`[]`, `"a"`, `null`, `{"a":1,"a":2}`, `{"a":1,"A":2}`, `{"a":1,"\u0061":2}`, `{"s":1,"ſ":2}`, `{"k":1,"K":2}`,
	} {
		if got, err := parsed(t, text).Members(); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, text := range []string{``, ` `, `{"a":1}{}`, `{"a":1,}`, `{'a':1}`, `{"a":1/**/}`, `{"a":NaN}`} {
		if got, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestElements(t *testing.T) {
	got, err := parsed(t, ` [ 1 , {"a":[2]},"x,]" ,[] ]`).Elements()
	if err != nil || len(got) != 4 || string(got[0]) != "1" || string(got[1]) != `{"a":[2]}` || string(got[2]) != `"x,]"` || string(got[3]) != "[]" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := parsed(t, `{}`).Elements(); err == nil {
		t.Errorf("%q", got)
	}
}

// FuzzValue: what Members and Elements find is what encoding/json finds.
func FuzzValue(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[1,"}"]}}`))
	f.Add([]byte(`{"\u0061":"\"","b":-1e3}`))
	f.Add([]byte(`[1, [2,"]"] , {}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		if err != nil {
			return
		}
		if got, err := v.Elements(); err == nil {
			var want []json.RawMessage
			if err := json.Unmarshal(data, &want); err != nil || len(got) != len(want) {
				t.Fatalf("%q: %q and %q", data, got, want)
			}
			for i := range got {
				if string(got[i]) != string(want[i]) {
					t.Fatalf("%q: %q and %q", data, got, want)
				}
			}
		}
		got, err := v.Members()
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil || len(got) != len(want) {
			t.Fatalf("%q: %v and %v", data, got, want)
		}
		for _, m := range got {
			if value, ok := want[m.Name]; !ok || string(value) != string(m.Value) || string(data[m.Start:m.Start+len(m.Value)]) != string(value) {
				t.Fatalf("%q: %q is %q, not %q", data, m.Name, m.Value, value)
			}
		}
	})
}

func TestManyParts(t *testing.T) {
	list := "[0" + strings.Repeat(",0", maxParts-1)
	if all, err := Value(list + "]").Elements(); err != nil || len(all) != maxParts {
		t.Error(len(all), err)
	}
	if all, err := Value(list + ",0]").Elements(); err == nil {
		t.Errorf("%d elements", len(all))
	}
	var b strings.Builder
	for i := range maxParts + 1 {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	if all, err := Value("{" + strings.TrimSuffix(b.String(), ",") + "}").Members(); err == nil {
		t.Errorf("%d members", len(all))
	}
}
