package main

import (
	"encoding/json"
	"reflect"
	"sort"
	"strings"

	"github.com/tholehq/thole/protocol/app"
)

// model is the contract's types by name and its methods.
type model struct {
	types   map[string]reflect.Type
	methods []app.Method
}

func collect() *model {
	m := &model{types: map[string]reflect.Type{}, methods: app.Methods()}
	for _, x := range m.methods {
		m.visit(reflect.TypeOf(x.Params))
		m.visit(reflect.TypeOf(x.Result))
	}
	m.visit(reflect.TypeOf(app.ErrorData{}))
	m.visit(reflect.TypeOf(app.UserInput{})) // named by a tag only
	return m
}

var raw = reflect.TypeOf(json.RawMessage(nil))

func (m *model) visit(t reflect.Type) {
	if t == nil || t == raw {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		m.visit(t.Elem())
	case reflect.Struct:
		if m.types[t.Name()] != nil {
			return
		}
		m.types[t.Name()] = t
		for _, f := range fields(t) {
			m.visit(f.typ)
		}
	}
}

func (m *model) names() []string {
	names := make([]string, 0, len(m.types))
	for n := range m.types {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// field is one member as it is on the wire.
type field struct {
	name     string
	typ      reflect.Type
	optional bool // may be absent
	ts       string
}

// fields flattens embedded structs, as the encoder does.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, fields(f.Type)...)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, field{name: name, typ: f.Type, optional: strings.Contains(rest, "omit"), ts: f.Tag.Get("ts")})
	}
	return out
}

// nullable reports whether the encoder writes null for the zero value.
func (f field) nullable() bool {
	if f.optional {
		return false
	}
	switch f.typ.Kind() {
	case reflect.Pointer, reflect.Map:
		return true
	}
	return f.typ == raw
}
