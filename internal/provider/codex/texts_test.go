package codex

import (
	"encoding/json"
	"testing"
)

// Whatever encoding/json reads as the strings of an object, texts finds too.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":"b"}`, ` { "a" : 1 , "b" : "c\\\"d" , "e" : {"x":["y","]"]}, "f":"\u00e4ö" } `, `{"a":null,"b":[1,{"c":"}"}],"d":"e"}`,
		`{"threadId":"t","turnId":"u","itemId":"i","delta":"say \"hi\"\n"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]any
		if json.Unmarshal(data, &want) != nil {
			return
		}
		got := map[string]string{}
		texts(data, func(key, value []byte) { got[plain(key)] = plain(value) })
		for k, v := range want {
			if s, ok := v.(string); ok && got[k] != s {
				t.Errorf("%q: %q, want %q", k, got[k], s)
			}
		}
	})
}
