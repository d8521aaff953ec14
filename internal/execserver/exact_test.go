package execserver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tholehq/thole/protocol/exec"
)

// Every member of every method's params, at every depth, is known by its exact name only,
// is refused next to one that differs by case, and is not absent when it is null.
func TestParamsAreReadExactly(t *testing.T) {
	for _, params := range []any{
		exec.InitializeParams{}, exec.StartParams{}, exec.ReadParams{}, exec.WriteParams{}, exec.SignalParams{}, exec.ResizeParams{}, exec.ProcessParams{},
		exec.ConfigReadParams{}, exec.HTTPRequestParams{}, exec.PathParams{}, exec.WriteFileParams{}, exec.CreateDirectoryParams{}, exec.WalkParams{},
		exec.RemoveParams{}, exec.CopyParams{}, exec.OpenParams{}, exec.HandleParams{}, exec.ReadBlockParams{}, exec.WriteBlockParams{}, exec.WatchMissingParams{},
		exec.WatchParams{}, exec.UnwatchParams{},
	} {
		typ := reflect.TypeOf(params)
		t.Run(typ.Name(), func(t *testing.T) {
			whole := sampleOf(typ)
			read := func() (any, error) {
				raw, err := json.Marshal(whole)
				if err != nil {
					t.Fatal(err)
				}
				p := reflect.New(typ)
				if e := decode(raw, p.Interface()); e != nil {
					return nil, fmt.Errorf("%s: %w", raw, e)
				}
				return p.Interface(), nil
			}
			if _, err := read(); err != nil {
				t.Fatal(err)
			}
			eachMember(typ, whole, func(object map[string]any, f reflect.StructField, name string) {
				value := object[name]
				optional := f.Type.Kind() == reflect.Pointer || f.Type == reflect.TypeFor[json.RawMessage]() || f.Tag.Get("strict") == "null"
				if object[name] = nil; f.Type.Kind() != reflect.Interface {
					if got, err := read(); (err == nil) != optional {
						t.Errorf("%s is null: %+v, %v", name, got, err)
					}
				}
				delete(object, name)
				without, werr := read()
				if may := optional || f.Tag.Get("strict") != "" || strings.Contains(f.Tag.Get("json"), ",omit"); (werr == nil) != may {
					t.Errorf("without %s: %v", name, werr)
				}
				for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
					object[other] = value
					if got, err := read(); (err == nil) != (werr == nil) || err == nil && !reflect.DeepEqual(got, without) {
						t.Errorf("%s instead of %s: %+v, %v", other, name, got, err)
					}
					object[name] = value
					if got, err := read(); err == nil {
						t.Errorf("%s next to %s: %+v", other, name, got)
					}
					delete(object, other)
					delete(object, name)
				}
				object[name] = value
			})
		})
	}
}

// sampleOf is a value of a type with all its members.
func sampleOf(t reflect.Type) any {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{"a": 1}
	case t.Kind() == reflect.Pointer:
		return sampleOf(t.Elem())
	case t.Kind() == reflect.Struct:
		object := map[string]any{}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			object[name] = sampleOf(f.Type)
		}
		return object
	case t.Kind() == reflect.Map:
		return map[string]any{"k": sampleOf(t.Elem())}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "AAAA"
	case t.Kind() == reflect.Slice:
		return []any{sampleOf(t.Elem())}
	case t.Kind() == reflect.Bool:
		return true
	case t.Kind() == reflect.String:
		return "x"
	}
	return 1
}

func eachMember(t reflect.Type, value any, visit func(object map[string]any, f reflect.StructField, name string)) {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
	case t.Kind() == reflect.Pointer:
		eachMember(t.Elem(), value, visit)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		eachMember(t.Elem(), value.([]any)[0], visit)
	case t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			visit(value.(map[string]any), f, name)
			eachMember(f.Type, value.(map[string]any)[name], visit)
		}
	}
}

// Lists and maps hold no nulls.
func TestNullsInsideParams(t *testing.T) {
	const start = `{"processId":"p","argv":["true"],"cwd":"file:///","env":{"A":"b"},"tty":false}`
	for from, to := range map[string]string{`["true"]`: `["true",null]`, `"b"`: `null`, `{"A":"b"}`: `[null]`} {
		var p exec.StartParams
		if e := decode(json.RawMessage(start), &p); e != nil {
			t.Fatal(e)
		}
		if e := decode(json.RawMessage(strings.Replace(start, from, to, 1)), &p); e == nil {
			t.Errorf("%s is taken", to)
		}
	}
	var c exec.ConfigReadParams
	if e := decode(json.RawMessage(`{"cwd":"file:///","configPaths":[["a",null]],"requirementsPaths":[]}`), &c); e == nil {
		t.Error("a null in a list of lists is taken")
	}
}

// A required member may be written with escapes; one in other case does not count.
func TestRequiredMembersByTheirExactNames(t *testing.T) {
	var p exec.HandleParams
	if e := decode(json.RawMessage(`{"handle\u0049d":"h"}`), &p); e != nil || p.HandleID != "h" {
		t.Errorf("%+v, %v", p, e)
	}
	if e := decode(json.RawMessage(`{"HandleId":"h"}`), &p); e == nil {
		t.Error("another name is taken for it")
	}
}
