package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/protocol/app"
)

// Every member of every request that Codex knows and we serve is read by a processor or
// has a rule, and never both: none can be dropped by oversight.
func TestEveryMemberHasItsFate(t *testing.T) {
	known := clientRequests(t)
	rules := appserver.Rules()
	for _, m := range app.Methods() {
		if m.Direction != app.FromClient || m.Extension {
			continue
		}
		var read []string
		if m.Params != nil {
			read = fields(reflect.TypeOf(m.Params))
		}
		upstream, ok := known[m.Name]
		if !ok {
			continue // older or newer than the installed one
		}
		for _, name := range upstream {
			_, ruled := rules[m.Name][name]
			switch {
			case ruled && slices.Contains(read, name):
				t.Errorf("%s.%s is read and has a rule", m.Name, name)
			case !ruled && !slices.Contains(read, name):
				t.Errorf("%s.%s is neither read nor refused nor known to be harmless", m.Name, name)
			}
		}
		for name := range rules[m.Name] {
			if !slices.Contains(upstream, name) {
				t.Errorf("%s.%s has a rule, and Codex does not know it", m.Name, name)
			}
		}
	}
}

// clientRequests are the members of each method's params by the schema that the installed
// codex prints.
func clientRequests(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for method, props := range requestShapes(t) {
		for _, p := range props {
			all[method] = append(all[method], p.name)
		}
		if len(props) == 0 {
			all[method] = nil
		}
	}
	if len(all) < 100 || !slices.Contains(all["turn/start"], "outputSchema") {
		t.Fatalf("the schema is not understood: %d methods", len(all))
	}
	return all
}

// document is the schema of all requests.
type document struct {
	OneOf []struct {
		Properties struct {
			Method struct {
				Enum []string `json:"enum"`
			} `json:"method"`
			Params schema `json:"params"`
		} `json:"properties"`
	} `json:"oneOf"`
	Definitions map[string]schema `json:"definitions"`
}

func requestSchema(t *testing.T) (doc document) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(lab.Codex(t), "app-server", "generate-json-schema", "--experimental", "--out", dir)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "ClientRequest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// schema is as much of JSON Schema as requests are described by.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       json.RawMessage   `json:"type"`
	Enum       []string          `json:"enum"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
	AllOf      []schema          `json:"allOf"`
	AnyOf      []schema          `json:"anyOf"`
	OneOf      []schema          `json:"oneOf"`
}

// UnmarshalJSON takes true and false for schemas that say nothing.
func (s *schema) UnmarshalJSON(raw []byte) error {
	type plain schema
	if len(raw) > 0 && raw[0] != '{' {
		return nil
	}
	return json.Unmarshal(raw, (*plain)(s))
}

// collect lists the members of an object.
func (s schema) collect(defs map[string]schema, into *[]property) {
	if s.Ref != "" {
		defs[strings.TrimPrefix(s.Ref, "#/definitions/")].collect(defs, into)
	}
	for name, of := range s.Properties {
		p := property{name: name, required: slices.Contains(s.Required, name)}
		of.describe(defs, &p)
		*into = append(*into, p)
	}
	for _, part := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		part.collect(defs, into)
	}
}

// describe adds what a member's value may be.
func (s schema) describe(defs map[string]schema, p *property) {
	if s.Ref != "" {
		defs[strings.TrimPrefix(s.Ref, "#/definitions/")].describe(defs, p)
	}
	var one string
	var several []string
	if json.Unmarshal(s.Type, &one) == nil && one != "null" {
		p.types = append(p.types, one)
	} else if json.Unmarshal(s.Type, &several) == nil {
		p.types = append(p.types, several...)
	}
	p.enum = append(p.enum, s.Enum...)
	for _, part := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		part.describe(defs, p)
	}
}

func fields(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, fields(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
