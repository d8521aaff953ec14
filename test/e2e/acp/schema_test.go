package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// schema is the protocol's own, with a schema for the params and the result of each method.
type schema struct {
	params, results map[string]*jsonschema.Schema // by side and method
	envelope        map[string]*jsonschema.Schema

	mu      sync.Mutex
	pending map[string]string // methods of open requests, by the answering side and id
}

// protocol reads the schema of the library for one connection.
func protocol(t testing.TB) *schema {
	t.Helper()
	_, dir := lab.ACP(t)
	raw, err := os.ReadFile(filepath.Join(dir, "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
			Side   string `json:"x-side"`
		} `json:"$defs"`
		AnyOf []struct{ Title string } `json:"anyOf"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("acp.json", doc); err != nil {
		t.Fatal(err)
	}
	must := func(at string) *jsonschema.Schema {
		s, err := c.Compile("acp.json#" + at)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := &schema{params: map[string]*jsonschema.Schema{}, results: map[string]*jsonschema.Schema{}, envelope: map[string]*jsonschema.Schema{}, pending: map[string]string{}}
	for name, d := range file.Defs {
		switch {
		case d.Method == "":
		case strings.HasSuffix(name, "Response"):
			s.results[d.Side+" "+d.Method] = must("/$defs/" + name)
		default:
			s.params[d.Side+" "+d.Method] = must("/$defs/" + name)
		}
	}
	for i, side := range file.AnyOf {
		s.envelope[strings.ToLower(side.Title)] = must(fmt.Sprintf("/anyOf/%d", i))
	}
	if len(s.params) < 20 || len(s.envelope) < 2 {
		t.Fatalf("the schema has %d methods and %d sides", len(s.params), len(s.envelope))
	}
	return s
}

// check holds one line of a side against the schema: its envelope, and the params or the
// result of its method.
func (s *schema) check(side, line string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		return err
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
		Result json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return err
	}
	other := map[string]string{"agent": "client", "client": "agent"}[side]
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method == "$/cancel_request" {
		return validate(s.params["protocol "+m.Method], m.Params)
	}
	if err := s.envelope[side].Validate(value); err != nil {
		return err
	}
	switch {
	case m.Method != "":
		if m.ID != nil {
			s.pending[other+string(m.ID)] = m.Method
		}
		known := s.params[other+" "+m.Method]
		if known == nil {
			if strings.HasPrefix(m.Method, "_") {
				return nil // an extension of the agent's own
			}
			return fmt.Errorf("%s is no method of the %s", m.Method, other)
		}
		return validate(known, m.Params)
	case m.Result != nil:
		method := s.pending[side+string(m.ID)]
		if s.results[side+" "+method] == nil {
			return fmt.Errorf("an answer to %q of the %s", method, other)
		}
		return validate(s.results[side+" "+method], m.Result)
	}
	return nil
}

func validate(s *jsonschema.Schema, raw json.RawMessage) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	return s.Validate(value)
}
