package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// field is one member of the data that an MCP server asks for.
type field struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
}

// fields asks whether to answer an MCP server, and then for each member of its schema.
func (d *prompt) fields(ctx context.Context) (app.Answer, error) {
	a, err := d.verdict(ctx)
	if err != nil || a.Decision != string(event.DecisionAllow) {
		return a, err
	}
	var schema struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}
	_ = strictjson.Unmarshal(d.ask.Schema, &schema) // what cannot be read has no members
	given := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		f := schema.Properties[name]
		d.env.showTheirs(d.env.Err, []string{strings.TrimSuffix(cmp.Or(f.Title, name)+": "+f.Description, ": ")}, true)
		if len(f.Enum) > 0 {
			d.env.showTheirs(d.env.Err, []string{"one of " + strings.Join(f.Enum, ", ")}, true)
		}
		for {
			said, err := d.line(ctx, "your answer")
			if err != nil {
				return app.Answer{}, err
			}
			if said = strings.TrimSpace(said); said == "" && !slices.Contains(schema.Required, name) {
				break // left out
			}
			if v, ok := f.read(said); ok {
				given[name] = v
				break
			}
			putln(d.env.Err, "  not an answer:", clip(said, 40))
		}
	}
	a.Result, err = json.Marshal(given)
	return a, err
}

// read is a text as a value of the field's type.
func (f field) read(said string) (any, bool) {
	switch f.Type {
	case "boolean":
		switch strings.ToLower(said) {
		case "y", "yes", "true":
			return true, true
		case "n", "no", "false":
			return false, true
		}
		return nil, false
	case "integer":
		n, err := strconv.ParseInt(said, 10, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(said, 64)
		return n, err == nil
	}
	return said, said != "" && (len(f.Enum) == 0 || slices.Contains(f.Enum, said))
}
