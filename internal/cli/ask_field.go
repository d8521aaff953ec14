package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tholehq/thole/internal/strictjson"
)

// field is one member of the data that an MCP server asks for: of a type that MCP names, or
// else any JSON.
type field struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Format      string   `json:"format"`
	Enum        []string `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []titled `json:"oneOf"`
	AnyOf       []titled `json:"anyOf"`
	Items       *field   `json:"items"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
	MinLength   *float64 `json:"minLength"`
	MaxLength   *float64 `json:"maxLength"`
	MinItems    *float64 `json:"minItems"`
	MaxItems    *float64 `json:"maxItems"`
	// Default is what an empty line means.
	Default json.RawMessage `json:"default"`
}

type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// choices are what may be answered, with a title each; none where anything may.
func (f field) choices() (out []titled) {
	for i, value := range f.Enum {
		out = append(out, titled{Const: value})
		if i < len(f.EnumNames) {
			out[i].Title = f.EnumNames[i]
		}
	}
	return append(out, slices.Concat(f.OneOf, f.AnyOf)...)
}

// about are the lines that say what a field is for and what may be answered.
func (f field) about(name string, required bool) []string {
	lines := []string{strings.TrimSuffix(name+": "+f.Description, ": ")}
	list := func(how string, cs []titled) {
		if len(cs) == 0 {
			return
		}
		shown := make([]string, len(cs))
		for i, c := range cs {
			shown[i] = c.Const
			if c.Title != "" && c.Title != c.Const {
				shown[i] += " (" + c.Title + ")"
			}
		}
		lines = append(lines, how+strings.Join(shown, ", "))
	}
	if f.Type == "array" && f.Items != nil {
		list("any of, with commas between them: ", f.Items.choices())
	} else {
		list("one of ", f.choices())
	}
	if f.Type == "boolean" {
		lines = append(lines, "yes or no")
	}
	switch {
	case f.Default != nil:
		lines = append(lines, "an empty line is "+string(f.Default))
	case !required:
		lines = append(lines, "an empty line leaves it out")
	}
	return lines
}

// read is a text as a value of the field's type, or what is wrong with it.
func (f field) read(said string) (v any, fault string) {
	switch f.Type {
	case "boolean":
		switch strings.ToLower(said) {
		case "y", "yes", "true":
			return true, ""
		case "n", "no", "false":
			return false, ""
		}
		return nil, "yes or no is asked for"
	case "integer":
		n, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			return nil, "a whole number is asked for"
		}
		return n, bounds(float64(n), f.Minimum, f.Maximum, "")
	case "number":
		n, err := strconv.ParseFloat(said, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return nil, "a number is asked for"
		}
		return n, bounds(n, f.Minimum, f.Maximum, "")
	case "array":
		if f.Items == nil || len(f.Items.choices()) == 0 {
			break
		}
		some := []string{}
		for one := range strings.SplitSeq(said, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			value, fault := pick(one, f.Items.choices())
			if fault != "" {
				return nil, fault
			}
			if !slices.Contains(some, value) {
				some = append(some, value)
			}
		}
		return some, bounds(float64(len(some)), f.MinItems, f.MaxItems, " choices")
	case "string", "":
		if cs := f.choices(); len(cs) > 0 {
			return pick(said, cs)
		}
		if f.Type == "" {
			break
		}
		if said == "" {
			return nil, "an answer is needed"
		}
		return said, cmp.Or(misformed(said, f.Format), bounds(float64(utf8.RuneCountInString(said)), f.MinLength, f.MaxLength, " characters"))
	}
	var any json.RawMessage
	if strictjson.Unmarshal([]byte(said), &any) != nil {
		return nil, "JSON is asked for"
	}
	return any, ""
}

// pick is the value of the choice that a text names, by its value or its title.
func pick(said string, cs []titled) (value, fault string) {
	for _, of := range []func(titled) string{func(c titled) string { return c.Const }, func(c titled) string { return c.Title }} {
		for _, c := range cs {
			if said != "" && of(c) == said {
				return c.Const, ""
			}
		}
	}
	return "", "not one of the choices"
}

func bounds(n float64, low, high *float64, of string) string {
	switch {
	case low != nil && n < *low:
		return fmt.Sprintf("at least %v%s", *low, of)
	case high != nil && n > *high:
		return fmt.Sprintf("at most %v%s", *high, of)
	}
	return ""
}

// misformed says what a text lacks of the formats that MCP names.
func misformed(said, format string) string {
	ok, want := true, ""
	switch format {
	case "email":
		a, err := mail.ParseAddress(said)
		ok, want = err == nil && a.Address == said, "a mail address is asked for"
	case "uri":
		u, err := url.Parse(said)
		ok, want = err == nil && u.Scheme != "", "an address such as https://example.org is asked for"
	case "date":
		_, err := time.Parse(time.DateOnly, said)
		ok, want = err == nil, "a date such as 2026-11-20 is asked for"
	case "date-time":
		_, err := time.Parse(time.RFC3339, said)
		ok, want = err == nil, "a time such as 2026-11-20T10:00:00Z is asked for"
	}
	if ok {
		return ""
	}
	return want
}
