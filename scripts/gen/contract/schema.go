package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tholehq/thole/protocol/app"
)

type object map[string]any

// schema is one JSON Schema document: a definition per type, and the methods with
// what they take and give.
func (m *model) schema() []byte {
	defs := object{}
	for name, t := range m.types {
		defs[name] = structSchema(t)
	}
	methods := object{}
	for _, x := range m.methods {
		e := object{"direction": x.Direction}
		if x.Params != nil {
			e["params"] = ref(reflect.TypeOf(x.Params))
		}
		if x.Result != nil {
			e["result"] = ref(reflect.TypeOf(x.Result))
		}
		if x.Experimental {
			e["experimental"] = true
		}
		if x.Extension {
			e["extension"] = app.Extension
		}
		methods[x.Name] = e
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	doc := object{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "thole thread contract", "$defs": defs, "x-methods": methods}
	if err := enc.Encode(doc); err != nil {
		panic(err) // maps of strings always encode
	}
	return out.Bytes()
}

func structSchema(t reflect.Type) object {
	props, required := object{}, []string{}
	for _, f := range fields(t) {
		s := typeSchema(f.typ, f.ts)
		if f.nullable() && len(s) > 0 {
			s = object{"anyOf": []any{s, object{"type": "null"}}}
		}
		props[f.name] = s
		if !f.optional {
			required = append(required, f.name)
		}
	}
	s := object{"type": "object", "properties": props}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func ref(t reflect.Type) object { return object{"$ref": "#/$defs/" + t.Name()} }

func typeSchema(t reflect.Type, ts string) object {
	if t == raw {
		return object{}
	}
	if words := literals(ts); words != nil && t.Kind() != reflect.Slice {
		return object{"enum": words}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), ts)
	case reflect.Slice:
		return object{"type": "array", "items": typeSchema(t.Elem(), "")}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": typeSchema(t.Elem(), "")}
	case reflect.Struct:
		return ref(t)
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	}
	return object{"type": "integer"}
}

// literals reads a union of string literals from a ts tag; nil for other types.
func literals(ts string) []string {
	var out []string
	for part := range strings.SplitSeq(ts, "|") {
		part = strings.TrimSpace(part)
		if len(part) < 2 || part[0] != '"' || part[len(part)-1] != '"' {
			return nil
		}
		out = append(out, part[1:len(part)-1])
	}
	return out
}
