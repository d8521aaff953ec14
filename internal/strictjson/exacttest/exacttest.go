// Package exacttest asks of a decoder whether it knows members by their exact names
// only, with every member of a type, at every depth.
package exacttest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// Variants calls decode with objects of the type t. In each one member is in
// other letters of case: alone, where decode must not take it, and next to the
// right one, where it must refuse. decode returns what it read.
func Variants(t *testing.T, typ reflect.Type, decode func(raw []byte) (any, error)) {
	t.Helper()
	tried := 0
	walk(typ, nil, map[reflect.Type]bool{}, func(path []string, value string) {
		tried++
		name := path[len(path)-1]
		first := strings.IndexFunc(name, unicode.IsLetter) // _meta begins with none
		for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:first+1]) + name[first+1:], name[:first] + `\u00` + hex(name[first]^0x20) + name[first+1:]} {
			if other == name {
				continue
			}
			without, werr := decode([]byte(wrap(path, `{}`)))
			alone, err := decode([]byte(wrap(path, `{"`+other+`":`+value+`}`)))
			if err == nil && werr == nil && !reflect.DeepEqual(alone, without) {
				t.Errorf("%s: %s is obeyed: %+v", strings.Join(path, "."), other, alone)
			}
			both, err := decode([]byte(wrap(path, `{"`+name+`":`+value+`,"`+other+`":null}`)))
			if err == nil {
				t.Errorf("%s: %s next to it is taken: %+v", strings.Join(path, "."), other, both)
			}
		}
	})
	if tried == 0 && typ.Kind() == reflect.Struct && typ.NumField() > 0 {
		t.Errorf("%s has no member that was tried", typ)
	}
}

func hex(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

// wrap puts an object where the path's parent stands.
func wrap(path []string, object string) string {
	for i := len(path) - 2; i >= 0; i-- {
		switch step := path[i]; step {
		case "[]":
			object = `[` + object + `]`
		case "{}":
			object = `{"k":` + object + `}`
		default:
			object = `{"` + step + `":` + object + `}`
		}
	}
	return object
}

func walk(t reflect.Type, at []string, within map[reflect.Type]bool, visit func(path []string, value string)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	here := at[:len(at):len(at)]
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return
	case t.Kind() == reflect.Slice:
		walk(t.Elem(), append(here, "[]"), within, visit)
	case t.Kind() == reflect.Map:
		walk(t.Elem(), append(here, "{}"), within, visit)
	case t.Kind() != reflect.Struct || within[t]:
		return
	default:
		within[t] = true
		defer delete(within, t)
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "" || name == "-" {
				continue
			}
			path := append(here, name)
			visit(path, sample(f.Type))
			walk(f.Type, path, within, visit)
		}
	}
}

// sample is a value of a type that is not its zero.
func sample(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return `"x"`
	case reflect.Bool:
		return `true`
	case reflect.Struct:
		return `{}`
	case reflect.Map:
		return `{}`
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return `{"a":1}`
		}
		if t.Elem().Kind() == reflect.Uint8 {
			return `"AAAA"`
		}
		return `[]`
	}
	return `1`
}
