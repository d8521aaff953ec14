package strictjson

import (
	"encoding/json"
	"testing"
)

type whole struct {
	Name   string            `json:"name"`
	On     bool              `json:"on" strict:"optional"`
	Mode   string            `json:"mode,omitempty"`
	Bytes  []byte            `json:"bytes,omitempty" strict:"null"`
	Args   []string          `json:"args"`
	Paths  [][]string        `json:"paths,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Maybe  *string           `json:"maybe"`
	Raw    json.RawMessage   `json:"raw"`
	Inner  *wholeInner       `json:"inner"`
	Inners []wholeInner      `json:"inners,omitempty"`
	Any    []any             `json:"any,omitempty"`
}

type wholeInner struct {
	Key string `json:"key"`
}

func TestUnmarshalWhole(t *testing.T) {
	const base = `"name":"n","args":[]`
	for _, text := range []string{
		`{` + base + `}`, `{` + base + `,"maybe":null,"raw":null,"inner":null,"bytes":null,"any":[null,{"a":null}],"other":null}`,
		`{` + base + `,"inner":{"key":"","x":[null]},"inners":[{"key":"a"}],"paths":[[],["null"]],"env":{"A":"null"},"on":false}`,
		` { "na\u006de" : "n" , "args" : [ "a" , "b" ] } `,
	} {
		var v whole
		if err := UnmarshalWhole([]byte(text), &v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		`null`, `{}`, `{"name":"n"}`, `{"args":[]}`, `{"NAME":"n","args":[]}`, `{"name":null,"args":[]}`, `{"name":"n","args":null}`, `{"name":"n","args":["a", null]}`,
		`{` + base + `,"on":null}`, `{` + base + `,"mode":null}`, `{` + base + `,"paths":null}`, `{` + base + `,"paths":[null]}`, `{` + base + `,"paths":[["a"],[null]]}`,
		`{` + base + `,"env":null}`, `{` + base + `,"env":{"A":null}}`, `{` + base + `,"inner":{}}`, `{` + base + `,"inner":{"key":null}}`,
		`{` + base + `,"inners":null}`, `{` + base + `,"inners":[null]}`, `{` + base + `,"inners":[{}]}`, `{` + base + `,"Mode":"a","mode":"b"}`,
	} {
		var v whole
		if err := UnmarshalWhole([]byte(text), &v); err == nil {
			t.Errorf("%s is taken: %+v", text, v)
		}
	}
}

// TestBytesAreText: encoding/json also takes bytes as a list of numbers.
func TestBytesAreText(t *testing.T) {
	var v struct {
		Chunk []byte `json:"chunk"`
	}
	for text, ok := range map[string]bool{`{"chunk":"YQ=="}`: true, `{"chunk":""}`: true, `{"chunk":[]}`: false, `{"chunk":[97]}`: false, `{"chunk": [ "YQ==" ]}`: false} {
		if err := UnmarshalWhole([]byte(text), &v); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
