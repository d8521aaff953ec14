package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// mismatch is a value of another type than its member has, in the words of JSON:
// encoding/json names types of Go, which no reader of the text knows.
type mismatch struct{ *json.UnmarshalTypeError }

func (m mismatch) Error() string {
	if m.Field == "" {
		return fmt.Sprintf("%s where %s belongs", m.Value, Kind(m.Type))
	}
	return fmt.Sprintf("%s is %s where %s belongs", m.Field, m.Value, Kind(m.Type))
}

func (m mismatch) Unwrap() error { return m.UnmarshalTypeError }

// inWords says what encoding/json says without types of Go.
func inWords(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return mismatch{wrong}
	}
	return err
}

// Kind is a type in the words of JSON.
func Kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "a sequence"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return Kind(t.Elem())
	}
	return "a number"
}
