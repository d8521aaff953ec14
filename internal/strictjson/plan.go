package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// plan says what to look at in the text of one type.
type plan struct {
	kind   planKind
	elem   *plan // of what a list or a map holds
	nulls  bool  // what a list or a map holds may be null
	fields []field
	needed uint64         // the fields that have no default, by their place
	exact  map[string]int // by name, where there are many
}

type planKind uint8

const (
	opaque   planKind = iota // nothing in it is ours to check
	anything                 // objects of any members, none of them twice
	object
	mapping
	list
	flat    // a list in which only nulls are ours to check
	encoded // bytes, which stand in text and not in a list of numbers
)

// field is one member of a struct.
type field struct {
	name     string
	plan     *plan
	nullable bool
	optional bool
}

// manyFields is from where on a map finds a member faster than a walk.
const manyFields = 12

var (
	plans   sync.Map   // reflect.Type → *plan
	making  sync.Mutex // guards drafts
	drafts  map[reflect.Type]*plan
	rawType = reflect.TypeFor[json.RawMessage]()
	reads   = reflect.TypeFor[json.Unmarshaler]()
	readsT  = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func planOf(t reflect.Type) *plan {
	for t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	making.Lock()
	defer making.Unlock()
	drafts = map[reflect.Type]*plan{}
	p := draft(t)
	for t, p := range drafts { // whole only now: types may hold themselves
		plans.LoadOrStore(t, p)
	}
	return p
}

func draft(t reflect.Type) *plan {
	for t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p, ok := drafts[t]; ok {
		return p
	}
	p := &plan{}
	drafts[t] = p
	if decodesItself(t) || decodesItself(reflect.PointerTo(t)) {
		return p
	}
	switch t.Kind() {
	case reflect.Interface:
		p.kind = anything
	case reflect.Map:
		p.kind, p.elem, p.nulls = mapping, draft(t.Elem()), nullable(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			if t.Kind() == reflect.Slice {
				p.kind = encoded
			}
			return p
		}
		p.kind, p.elem, p.nulls = list, draft(t.Elem()), nullable(t.Elem())
		if p.elem.kind == opaque || p.elem.kind == flat {
			p.kind = flat
		}
	case reflect.Struct:
		p.kind, p.fields = object, fieldsOf(t)
		for i, f := range p.fields[:min(len(p.fields), 64)] {
			if !f.optional {
				p.needed |= 1 << i
			}
		}
		if len(p.fields) >= manyFields {
			p.exact = make(map[string]int, len(p.fields))
			for i, f := range p.fields {
				p.exact[f.name] = i
			}
		}
	}
	return p
}

func decodesItself(t reflect.Type) bool {
	return t == rawType || t.Implements(reads) || t.Implements(readsT)
}

// nullable says whether null is a value of a type of its own.
func nullable(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || t == rawType
}

// memberOf reads the tags of a field: what is left out when it is empty may be absent,
// and so may what can be null or what `strict:"optional"` says it of. `strict:"null"`
// is for a type that has no pointer and takes null all the same.
func memberOf(name string, f reflect.StructField) field {
	tag, strict := f.Tag.Get("json"), f.Tag.Get("strict")
	m := field{name: name, plan: draft(f.Type), nullable: nullable(f.Type) || strict == "null"}
	m.optional = m.nullable || strict == "optional" || strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero")
	return m
}

// found is a member with what decides between several of one name.
type found struct {
	field
	depth  int
	tagged bool
}

// fieldsOf lists the members that encoding/json knows of a struct: those of
// embedded structs too, the shallowest of a name, among those the tagged one; none
// where that leaves several.
func fieldsOf(t reflect.Type) []field {
	var all []found
	collect(t, 0, map[reflect.Type]bool{}, &all)
	slices.SortStableFunc(all, func(a, b found) int {
		switch {
		case a.name != b.name:
			return strings.Compare(a.name, b.name)
		case a.depth != b.depth:
			return a.depth - b.depth
		case a.tagged != b.tagged && a.tagged:
			return -1
		case a.tagged != b.tagged:
			return 1
		}
		return 0
	})
	var out []field
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].name == all[i].name {
			j++
		}
		if j == i+1 || all[i+1].depth != all[i].depth || all[i+1].tagged != all[i].tagged {
			out = append(out, all[i].field)
		}
		i = j
	}
	return out
}

func collect(t reflect.Type, depth int, within map[reflect.Type]bool, all *[]found) {
	if within[t] {
		return
	}
	within[t] = true
	defer delete(within, t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		elem := f.Type
		if f.Anonymous && elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		switch {
		case tag == "-", !f.IsExported() && !(f.Anonymous && elem.Kind() == reflect.Struct):
		case f.Anonymous && name == "" && elem.Kind() == reflect.Struct:
			collect(elem, depth+1, within, all)
		case !f.IsExported():
		case name == "":
			*all = append(*all, found{memberOf(f.Name, f), depth, false})
		default:
			*all = append(*all, found{memberOf(name, f), depth, true})
		}
	}
}
