// Package strictjson reads JSON as its writer meant it: a member is known by its
// exact name, and no object has two of one name. encoding/json also takes a member
// in other letters of case and lets the last of several win, so `"Sandbox":null`
// next to `"sandbox"` would switch a sandbox off.
//
// A member whose name differs from a known one by case alone is unknown and is
// passed over, as any unknown member is; next to the known one it is refused as its
// duplicate. Keys of maps are case-sensitive, because they are data. What
// decodes itself (json.Unmarshaler, json.RawMessage) is not looked into.
//
// It knows none of our nouns. Values are made by encoding/json.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
)

// Unmarshal is json.Unmarshal for exact names.
func Unmarshal(data []byte, v any) error {
	data, err := check(data, v, walker{})
	if err != nil {
		return err
	}
	return inWords(json.Unmarshal(data, v))
}

// UnmarshalWhole is Unmarshal that takes nothing for a default by accident. Null is
// refused unless the Go type is a pointer, an interface or a json.RawMessage, also in lists
// and maps. Bytes are base64 and no list of numbers. A member is refused when it is absent, unless it may be null or its tag has
// omitempty or omitzero. The tags `strict:"optional"` and `strict:"null"` allow a member to
// be absent, or absent and null, where the type does not say it.
func UnmarshalWhole(data []byte, v any) error {
	data, err := check(data, v, walker{whole: true})
	if err != nil {
		return err
	}
	return inWords(json.Unmarshal(data, v))
}

// UnmarshalKnown is Unmarshal that refuses members v does not know.
func UnmarshalKnown(data []byte, v any) error {
	data, err := check(data, v, walker{known: true})
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return inWords(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// Read is Unmarshal of all that r gives.
func Read(r io.Reader, v any) error { return read(r, v, Unmarshal) }

// ReadKnown is UnmarshalKnown of all that r gives.
func ReadKnown(r io.Reader, v any) error { return read(r, v, UnmarshalKnown) }

func read(r io.Reader, v any, unmarshal func([]byte, any) error) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return io.EOF
	}
	return unmarshal(data, v)
}

// check returns the text for encoding/json: data, or a copy in which members in the
// wrong case are renamed to something that nothing is called.
func check(data []byte, v any, w walker) ([]byte, error) {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return data, nil // encoding/json says what is wrong with it
	}
	w.data = data
	switch ok := w.mayBe(nullable(t.Elem()), "object") && w.value(planOf(t.Elem()), 0); {
	case w.err != nil:
		return nil, w.err
	case !ok && json.Valid(data): // never, and then not by guesswork
		return nil, errors.New("JSON that cannot be checked")
	case w.masked != nil:
		return w.masked, nil
	}
	return data, nil
}
