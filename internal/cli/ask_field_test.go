package cli

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/protocol/app"
)

func TestFieldsOfAForm(t *testing.T) {
	const choices = `"enum":["s","l"],"enumNames":["Small","Large"]`
	for name, c := range map[string]struct{ schema, said, want, fault string }{
		"text":               {`{"type":"string"}`, "as typed", `"as typed"`, ""},
		"text, none":         {`{"type":"string"}`, "", "", "needed"},
		"text, short":        {`{"type":"string","minLength":3}`, "äö", "", "at least 3 characters"},
		"text, long":         {`{"type":"string","maxLength":2}`, "abc", "", "at most 2 characters"},
		"mail":               {`{"type":"string","format":"email"}`, "a@example.org", `"a@example.org"`, ""},
		"no mail":            {`{"type":"string","format":"email"}`, "A <a@example.org>", "", "mail address"},
		"no link":            {`{"type":"string","format":"uri"}`, "example", "", "https://"},
		"day":                {`{"type":"string","format":"date"}`, "2026-11-20", `"2026-11-20"`, ""},
		"no day":             {`{"type":"string","format":"date"}`, "2026-13-01", "", "date"},
		"time":               {`{"type":"string","format":"date-time"}`, "2026-11-20T10:00:00Z", `"2026-11-20T10:00:00Z"`, ""},
		"whole number":       {`{"type":"integer","minimum":0}`, "0", `0`, ""},
		"no whole number":    {`{"type":"integer"}`, "1.5", "", "whole number"},
		"too small":          {`{"type":"integer","minimum":1}`, "0", "", "at least 1"},
		"too large":          {`{"type":"number","maximum":0.5}`, "1", "", "at most 0.5"},
		"without end":        {`{"type":"number"}`, "Inf", "", "number"},
		"yes":                {`{"type":"boolean"}`, "Y", `true`, ""},
		"neither":            {`{"type":"boolean"}`, "maybe", "", "yes or no"},
		"choice":             {`{"type":"string",` + choices + `}`, "l", `"l"`, ""},
		"choice by title":    {`{"type":"string",` + choices + `}`, "Large", `"l"`, ""},
		"titled choice":      {`{"type":"string","oneOf":[{"const":"r","title":"Red"}]}`, "Red", `"r"`, ""},
		"no choice":          {`{"type":"string",` + choices + `}`, "x", "", "choices"},
		"several":            {`{"type":"array","items":{` + choices + `}}`, "Large, s,l", `["l","s"]`, ""},
		"several, one wrong": {`{"type":"array","items":{` + choices + `}}`, "s,x", "", "choices"},
		"too few":            {`{"type":"array","minItems":2,"items":{"anyOf":[{"const":"a"},{"const":"b"}]}}`, "a", "", "at least 2 choices"},
		"too many":           {`{"type":"array","maxItems":1,"items":{"anyOf":[{"const":"a"},{"const":"b"}]}}`, "a,b", "", "at most 1 choices"},
		"another type":       {`{"type":"object"}`, `{"x":1}`, `{"x":1}`, ""},
		"no JSON":            {`{"type":"object"}`, "x", "", "JSON"},
	} {
		var f field
		if err := json.Unmarshal([]byte(c.schema), &f); err != nil {
			t.Fatal(err)
		}
		v, fault := f.read(c.said)
		if got, _ := json.Marshal(v); c.fault == "" && (fault != "" || string(got) != c.want) || c.fault != "" && !strings.Contains(fault, c.fault) {
			t.Errorf("%s: %s, fault %q; want %s, %q", name, got, fault, c.want, c.fault)
		}
	}
}

func TestFieldsAreAskedInTheirOrder(t *testing.T) {
	members, required := formOf(json.RawMessage(`{"required":["b"],"properties":{"z":{"type":"string"},"a":{"enum":[1],"title":"A"},"m":{}}}`))
	want := []formMember{{"z", field{Type: "string"}}, {"a", field{Type: "object"}}, {"m", field{}}}
	if !reflect.DeepEqual(members, want) || !reflect.DeepEqual(required, []string{"b"}) {
		t.Error(members, required)
	}
	for _, broken := range []string{"", "null", `{"properties":[1]}`, `{"properties":`} {
		if got, _ := formOf(json.RawMessage(broken)); len(got) != 0 {
			t.Errorf("%s: %v", broken, got)
		}
	}
	f := field{Type: "array", Items: &field{OneOf: []titled{{"m", "Milk"}, {"h", "h"}}}, Description: "What else?", Default: json.RawMessage(`["m"]`)}
	if got := strings.Join(f.about("extras", false), "\n"); got != "extras: What else?\nany of, with commas between them: m (Milk), h\nan empty line is [\"m\"]" {
		t.Error(got)
	}
}

func TestFlagsThatAnswer(t *testing.T) {
	form := func(schema string) app.Ask {
		return app.Ask{Kind: string(event.AskElicitation), Schema: json.RawMessage(schema)}
	}
	for want, a := range map[string]app.Ask{
		"--decision allow": form(""),
		`--decision allow --result '{"cups": …, "name": …}'`: form(`{"properties":{"cups":{},"mail":{},"name":{}},"required":["name","cups"]}`),
		"--decision allow --result '{…}'":                    form(`{"properties":{"'; rm -rf ~; '":{}},"required":["'; rm -rf ~; '"]}`),
		"--answer q1=…":                                      {Kind: string(event.AskInput), Questions: []app.Question{{ID: "q1"}}},
	} {
		if got := howToAnswer(a); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}
