package thread

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

func function(name, schema string) event.ClientTool {
	return event.ClientTool{Name: name, Description: "d", Schema: json.RawMessage(schema)}
}

func namespace(name string, tools ...event.ClientTool) event.ClientTool {
	return event.ClientTool{Name: name, Description: "d", Tools: append([]event.ClientTool{}, tools...)}
}

const anyObject = `{"type":"object"}`

func TestTools(t *testing.T) {
	deferred := function("later", anyObject)
	deferred.Deferred = true
	many := make([]event.ClientTool, maxTools)
	for i := range many {
		many[i] = function(fmt.Sprintf("tool_%d", i), anyObject)
	}
	wordy := namespace("wordy", function("a", anyObject))
	wordy.Description = strings.Repeat("ä", maxNamespaceAbout+1)
	for _, c := range []struct {
		want  string // "" for none
		tools []event.ClientTool
	}{
		{"", nil},
		{"", []event.ClientTool{function("a", anyObject), namespace("b", function("a", anyObject), deferred), namespace("c", function("a", `{}`))}},
		{"", many},
		{"dynamic tool name must not be empty", []event.ClientTool{function(" ", anyObject)}},
		{"dynamic tool name has leading/trailing whitespace: a ", []event.ClientTool{function("a ", anyObject)}},
		{"dynamic tool name must match ^[a-zA-Z0-9_-]+$ to match Responses API: a.b", []event.ClientTool{function("a.b", anyObject)}},
		{`dynamic tool name must match ^[a-zA-Z0-9_-]+$ to match Responses API: a\nb`, []event.ClientTool{function("a\nb", anyObject)}},
		{"dynamic tool name must be at most 128 characters", []event.ClientTool{function(strings.Repeat("a", 129), anyObject)}},
		{"dynamic tool name is reserved: mcp", []event.ClientTool{function("mcp", anyObject)}},
		{"dynamic tool name is reserved: mcp__x", []event.ClientTool{namespace("n", function("mcp__x", anyObject))}},
		{"duplicate dynamic tool name: a", []event.ClientTool{function("a", anyObject), function("a", anyObject)}},
		{"duplicate dynamic tool name in namespace n: a", []event.ClientTool{namespace("n", function("a", anyObject), function("a", anyObject))}},
		{"deferred dynamic tool must include a namespace: later", []event.ClientTool{deferred}},
		{"dynamic tool namespace must not be empty", []event.ClientTool{namespace("", function("a", anyObject))}},
		{"dynamic tool namespace must be at most 64 characters", []event.ClientTool{namespace(strings.Repeat("a", 65), function("a", anyObject))}},
		{"dynamic tool namespace description must be at most 1024 characters", []event.ClientTool{wordy}},
		{"dynamic tool namespace is reserved: mcp__n", []event.ClientTool{namespace("mcp__n", function("a", anyObject))}},
		{"dynamic tool namespace collides with a reserved Responses API namespace: web", []event.ClientTool{namespace("web", function("a", anyObject))}},
		{"duplicate dynamic tool namespace: n", []event.ClientTool{namespace("n", function("a", anyObject)), namespace("n", function("b", anyObject))}},
		{"dynamic tool namespace must contain at least one tool: n", []event.ClientTool{namespace("n")}},
		{"dynamic tool input schema is not supported for a: tool input schema must not be a singleton null type", []event.ClientTool{function("a", `{"type":"null"}`)}},
		{"dynamic tool input schema is not supported for a: a schema is a JSON object", []event.ClientTool{function("a", `[]`)}},
		{"a thread has at most 128 dynamic tools", append([]event.ClientTool{function("one_more", anyObject)}, many...)},
		{"a thread has at most 128 dynamic tools of 262144 bytes", []event.ClientTool{{Name: "a", Description: strings.Repeat("x", maxToolBytes), Schema: json.RawMessage(anyObject)}}},
	} {
		err := checkTools(c.tools)
		if c.want == "" && err != nil || c.want != "" && (thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

func TestOutputSchema(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, maxSchemaDepth+1) + `{}` + strings.Repeat(`}}`, maxSchemaDepth+1)
	for schema, want := range map[string]string{
		anyObject: "",
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/c"}]}},"required":["a"],"additionalProperties":false,"$defs":{"c":{"enum":[1,"x"]}}}`: "",
		`{"type":"object","properties":{"a":true}}`: "",
		`null`:                              "a schema is a JSON object",
		`"object"`:                          "a schema is a JSON object",
		`{`:                                 "a schema is a JSON object",
		`{}`:                                "its type is not object",
		`{"type":"array","items":{}}`:       "its type is not object",
		`{"type":["object"]}`:               "its type is not object",
		`{"type":"object","type":"object"}`: "a schema is a JSON object",
		`{"type":"objekt"}`:                 "type of the schema is not one of",
		`{"type":"object","required":"a"}`:  "required of the schema is not a list of names",
		`{"type":"object","properties":[]}`: "properties of the schema is not an object of schemas",
		`{"type":"object","properties":{"a":{"type":"text"}}}`: "type of the schema/properties/a is not one of",
		`{"type":"object","properties":{"a":{"items":3}}}`:     "the schema/properties/a/items is neither an object nor a boolean",
		`{"type":"object","properties":{"a":{"enum":[]}}}`:     "enum of the schema/properties/a is not a list of values",
		`{"type":"object","anyOf":{}}`:                         "anyOf of the schema is not a list of schemas",
		deep:                                                   "levels deep",
		`{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`: "at most 65536 are taken",
	} {
		err := checkOutputSchema(json.RawMessage(schema))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || thole.HintOf(err) == "") {
			t.Errorf("%.80s: want %q, got %v", schema, want, err)
		}
	}
	if err := checkOutputSchema(nil); err != nil {
		t.Error(err)
	}
}
