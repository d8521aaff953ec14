package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// fields asks whether to answer an MCP server, and then for each member of its schema, in
// the order that the server gives them.
func (d *prompt) fields(ctx context.Context) (app.Answer, error) {
	a, err := d.verdict(ctx)
	if err != nil || a.Decision != string(event.DecisionAllow) {
		return a, err
	}
	members, required := formOf(d.ask.Schema)
	given := map[string]any{}
	for _, m := range members {
		name, f := m.name, m.field
		d.env.showTheirs(d.env.Err, f.about(cmp.Or(f.Title, name), slices.Contains(required, name)), true)
		for {
			said, err := d.line(ctx, "your answer")
			if err != nil {
				return app.Answer{}, err
			}
			if said = strings.TrimSpace(said); said == "" {
				if f.Default != nil {
					given[name] = f.Default
					break
				}
				if !slices.Contains(required, name) {
					break // left out
				}
			}
			v, fault := f.read(said)
			if fault == "" {
				given[name] = v
				break
			}
			putf(d.env.Err, "  not an answer: %s: %s\n", clip(said, 40), fault)
		}
	}
	a.Result, err = json.Marshal(given)
	return a, err
}

// formMember is a member of a form.
type formMember struct {
	name  string
	field field
}

// formOf reads a schema: its members in their order, and those that are required. One that
// cannot be read is answered as JSON.
func formOf(schema json.RawMessage) (members []formMember, required []string) {
	var in struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	_ = strictjson.Unmarshal(schema, &in) // what cannot be read has no members
	properties, err := strictjson.Parse(in.Properties)
	if err != nil {
		return nil, in.Required
	}
	parts, _ := properties.Members() // none where it is another thing
	for _, m := range parts {
		var f field
		if strictjson.Unmarshal(m.Value, &f) != nil {
			f = field{Type: "object"}
		}
		members = append(members, formMember{m.Name, f})
	}
	return members, in.Required
}
