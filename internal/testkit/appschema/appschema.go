// Package appschema checks traffic of the thread contract against the JSON schema that
// the installed codex prints: requests, answers by method, notifications and server
// requests, in both directions. A connection that declared thole's extension may carry
// what belongs to it; any other may not, and members that the schema does not know are
// reported wherever they are.
package appschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Schema is the contract as one version of codex prints it.
type Schema struct {
	requests, responses, notifications, asks, answers map[string]*jsonschema.Schema
}

// Installed returns the schema of the lab's codex.
func Installed(t testing.TB) *Schema {
	t.Helper()
	codex := lab.Codex(t)
	s, err := load(codex)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	once   sync.Once
	loaded *Schema
	failed error
)

func load(codex string) (*Schema, error) {
	once.Do(func() {
		dir := lab.Cache("appschema-" + lab.CodexVersion)
		if failed = generate(codex, dir); failed == nil {
			loaded, failed = compile(dir)
		}
	})
	return loaded, failed
}

// generate has codex print its schema into a directory, once for all tests.
func generate(codex, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "appschema-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.Command(codex, "app-server", "generate-json-schema", "--experimental", "--out", filepath.Join(tmp, "out"))
	cmd.Env = []string{"HOME=" + tmp, "CODEX_HOME=" + tmp, "PATH=/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("generate the schema of the contract: %w\n%s", err, out)
	}
	if err := os.Rename(filepath.Join(tmp, "out"), dir); err != nil && !exists(dir) { // another test may have been first
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// named are the answers whose names do not follow from their methods.
var named = map[string]string{
	"account/logout":          "LogoutAccountResponse",
	"account/rateLimits/read": "GetAccountRateLimitsResponse",
	"account/usage/read":      "GetAccountTokenUsageResponse",
	"config/mcpServer/reload": "McpServerRefreshResponse",
	"config/value/write":      "ConfigWriteResponse",
	"config/batchWrite":       "ConfigWriteResponse",
}

func compile(dir string) (*Schema, error) {
	b := builder{dir: dir, c: jsonschema.NewCompiler()}
	b.c.DefaultDraft(jsonschema.Draft7)
	s := &Schema{responses: map[string]*jsonschema.Schema{}, answers: map[string]*jsonschema.Schema{}}
	var err error
	if s.requests, err = b.union("ClientRequest.json", s.responses); err != nil {
		return nil, err
	}
	if s.notifications, err = b.union("ServerNotification.json", nil); err != nil {
		return nil, err
	}
	s.asks, err = b.union("ServerRequest.json", s.answers)
	return s, err
}

type builder struct {
	dir string
	c   *jsonschema.Compiler
}

// union compiles the params of each method of a file, and the types of the answers.
func (b *builder) union(file string, answers map[string]*jsonschema.Schema) (map[string]*jsonschema.Schema, error) {
	doc, err := b.add(file)
	if err != nil {
		return nil, err
	}
	out := map[string]*jsonschema.Schema{}
	list, _ := doc["oneOf"].([]any)
	for i, one := range list {
		var entry struct {
			Properties struct {
				Method struct{ Enum []string }
				Params struct {
					Ref string `json:"$ref"`
				}
			}
		}
		if err := convert(one, &entry); err != nil || len(entry.Properties.Method.Enum) != 1 {
			return nil, fmt.Errorf("%s: entry %d names no method: %w", file, i, err)
		}
		method := entry.Properties.Method.Enum[0]
		if out[method], err = b.c.Compile(fmt.Sprintf("%s#/oneOf/%d/properties/params", file, i)); err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if answers == nil {
			continue
		}
		name := strings.TrimSuffix(entry.Properties.Params.Ref[strings.LastIndexByte(entry.Properties.Params.Ref, '/')+1:], "Params") + "Response"
		if other := named[method]; other != "" {
			name = other
		}
		for _, path := range []string{name + ".json", "v2/" + name + ".json", "v1/" + name + ".json", camel(method) + "Response.json", "v2/" + camel(method) + "Response.json"} {
			if !exists(filepath.Join(b.dir, path)) {
				continue
			}
			if _, err := b.add(path); err != nil {
				return nil, err
			}
			if answers[method], err = b.c.Compile(path); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			break
		}
	}
	if len(out) == 0 {
		return nil, errors.New(file + " lists no methods")
	}
	return out, nil
}

func (b *builder) add(file string) (map[string]any, error) {
	f, err := os.Open(filepath.Join(b.dir, file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(io.LimitReader(f, 64<<20))
	if err != nil {
		return nil, err
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a schema", file)
	}
	closeObject(object, nil)
	var exists *jsonschema.ResourceExistsError
	if err := b.c.AddResource(file, object); err != nil && !errors.As(err, &exists) {
		return nil, err
	}
	return object, nil
}

// closeObject has a schema refuse members that it does not name. An object with variants
// has in each of them its own members too, outer, and is closed there.
func closeObject(v any, outer map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		members, object := v["properties"].(map[string]any)
		_, said := v["additionalProperties"]
		variants := v["allOf"] != nil || v["anyOf"] != nil || v["oneOf"] != nil
		if object && !said && !variants {
			for name := range outer {
				if members[name] == nil {
					members[name] = map[string]any{}
				}
			}
			v["additionalProperties"] = false
		}
		for k, child := range v {
			if k == "oneOf" || k == "anyOf" {
				closeObject(child, members)
			} else {
				closeObject(child, nil)
			}
		}
	case []any:
		for _, child := range v {
			closeObject(child, outer)
		}
	}
}

func camel(method string) string {
	var b strings.Builder
	for _, w := range strings.FieldsFunc(method, func(r rune) bool { return r == '/' || r == '_' }) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

func convert(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}
