package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// openAPI is what a page shows of a description.
type openAPI struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Summary     string
	Description string
	Tags        []string
	Parameters  []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format, Description  string
	Enum                 []any
	Const                any
	Items                *schema
	Properties           map[string]schema
	Required             []string
	OneOf, AnyOf, AllOf  []schema
	AdditionalProperties any
}

func httpReference(docs string) string {
	raw, err := os.ReadFile(filepath.Join(docs, "protocol", "openapi.json"))
	if err != nil {
		log.Fatal(err)
	}
	var d openAPI
	if err := json.Unmarshal(raw, &d); err != nil {
		log.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# HTTP reference\n\n" + written("the routes in internal/platform/httpapi"))
	b.WriteString("Every route with what it takes and answers, from [openapi.json](../protocol/openapi.json). How they belong together, events and errors: [protocol/http.md](../protocol/http.md).\n")
	byTag := map[string][]string{}
	for path, ops := range d.Paths {
		for method, op := range ops {
			tag := "other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			byTag[tag] = append(byTag[tag], path+" "+method)
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		fmt.Fprintf(&b, "\n## %s\n", tag)
		slices.Sort(byTag[tag])
		for _, key := range byTag[tag] {
			path, method, _ := strings.Cut(key, " ")
			d.Paths[path][method].put(&b, method, path)
		}
	}
	b.WriteString("\n## Types\n\nA member with `?` may be absent.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s\n\n", name)
		if s.Description != "" {
			b.WriteString(flat(s.Description) + "\n\n")
		}
		if len(s.Properties) == 0 {
			b.WriteString(s.text() + "\n")
			continue
		}
		b.WriteString("| member | type | |\n|---|---|---|\n")
		for _, p := range slices.Sorted(maps.Keys(s.Properties)) {
			optional := "?"
			if slices.Contains(s.Required, p) {
				optional = ""
			}
			fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", p, optional, cell(s.Properties[p].text()), cell(flat(s.Properties[p].Description)))
		}
	}
	return b.String()
}

func (op operation) put(b *strings.Builder, method, path string) {
	fmt.Fprintf(b, "\n### %s %s\n\n%s.\n", strings.ToUpper(method), path, strings.TrimSuffix(flat(op.Summary+" "+op.Description), "."))
	var lines []string
	for _, p := range op.Parameters {
		line := fmt.Sprintf("%s `%s`: %s", p.In, p.Name, p.Schema.text())
		if p.Required {
			line += ", required"
		}
		if p.Description != "" {
			line += ". " + flat(p.Description)
		}
		lines = append(lines, line)
	}
	for _, kind := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
		lines = append(lines, "body `"+kind+"`: "+op.RequestBody.Content[kind].Schema.text())
	}
	for _, code := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[code]
		if code[0] != '2' && code[0] != '3' {
			continue
		}
		if len(r.Content) == 0 {
			lines = append(lines, code)
		}
		for _, kind := range slices.Sorted(maps.Keys(r.Content)) {
			lines = append(lines, code+" `"+kind+"`: "+r.Content[kind].Schema.text())
		}
	}
	if len(lines) > 0 {
		b.WriteString("\n")
	}
	for _, line := range lines {
		b.WriteString("- " + line + "\n")
	}
}

// text is a type in a few words.
func (s schema) text() string {
	if s.Ref != "" {
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	for _, several := range [][]schema{s.OneOf, s.AnyOf, s.AllOf} {
		if len(several) > 0 {
			var parts []string
			for _, one := range several {
				parts = append(parts, one.text())
			}
			return strings.Join(parts, " or ")
		}
	}
	switch {
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case len(s.Enum) > 0:
		var parts []string
		for _, v := range s.Enum {
			parts = append(parts, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(parts, ", ")
	case s.Items != nil:
		return "list of " + s.Items.text()
	case len(s.Properties) > 0:
		var parts []string
		for _, p := range slices.Sorted(maps.Keys(s.Properties)) {
			parts = append(parts, "`"+p+"`: "+s.Properties[p].text())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case s.Type == nil:
		return "any"
	}
	kind := strings.Trim(fmt.Sprint(s.Type), "[]")
	if values, ok := s.AdditionalProperties.(map[string]any); ok {
		var inner schema
		if raw, err := json.Marshal(values); err == nil && json.Unmarshal(raw, &inner) == nil {
			return "object of " + inner.text()
		}
	}
	if s.Format != "" {
		kind += " (" + s.Format + ")"
	}
	return kind
}
