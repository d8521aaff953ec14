package thread

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
)

// Limits of a client's tools. Those of names and descriptions are the model services'.
const (
	maxTools           = 128
	maxToolBytes       = 256 << 10 // of all tools of a thread
	maxToolName        = 128
	maxNamespace       = 64
	maxNamespaceAbout  = 1024
	maxSchema          = 64 << 10
	maxSchemaDepth     = 32
	identifierOfTools  = "^[a-zA-Z0-9_-]+$"
	identifierAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
)

// reservedNamespaces have a meaning of their own at the model services.
var reservedNamespaces = []string{
	"api_tool", "browser", "computer", "container", "file_search", "functions", "image_gen", "multi_tool_use",
	"python", "python_user_visible", "submodel_delegator", "terminal", "tool_search", "web",
}

// checkTools refuses tools of a client that no model could be given. The words are those
// of the contract's other server: clients know them.
func checkTools(tools []event.ClientTool) error {
	count, size := 0, 0
	outside, spaces := map[string]bool{}, map[string]bool{}
	for _, t := range tools {
		if t.Tools == nil {
			count, size = count+1, size+toolSize(t)
			if err := checkTool(t, "", outside); err != nil {
				return err
			}
			continue
		}
		size += toolSize(t)
		if err := checkNamespace(t, spaces); err != nil {
			return err
		}
		inside := map[string]bool{}
		for _, one := range t.Tools {
			count, size = count+1, size+toolSize(one)
			if err := checkTool(one, t.Name, inside); err != nil {
				return err
			}
		}
	}
	if count > maxTools || size > maxToolBytes {
		return thole.Errorf(thole.CodeInvalid, "a thread has at most %d dynamic tools of %d bytes altogether; these are %d of %d", maxTools, maxToolBytes, count, size).
			WithHint("offer fewer tools, or shorten their descriptions")
	}
	return nil
}

func toolSize(t event.ClientTool) int { return len(t.Name) + len(t.Description) + len(t.Schema) }

func checkNamespace(t event.ClientTool, seen map[string]bool) error {
	if err := checkIdentifier("dynamic tool namespace", t.Name, maxNamespace); err != nil {
		return err
	}
	switch {
	case utf8.RuneCountInString(t.Description) > maxNamespaceAbout:
		return thole.Errorf(thole.CodeInvalid, "dynamic tool namespace description must be at most %d characters", maxNamespaceAbout)
	case reservedName(t.Name):
		return thole.Errorf(thole.CodeInvalid, "dynamic tool namespace is reserved: %s", t.Name)
	case slices.Contains(reservedNamespaces, t.Name):
		return thole.Errorf(thole.CodeInvalid, "dynamic tool namespace collides with a reserved Responses API namespace: %s", t.Name)
	case seen[t.Name]:
		return thole.Errorf(thole.CodeInvalid, "duplicate dynamic tool namespace: %s", t.Name)
	case len(t.Tools) == 0:
		return thole.Errorf(thole.CodeInvalid, "dynamic tool namespace must contain at least one tool: %s", t.Name)
	}
	seen[t.Name] = true
	return checkText("dynamic tool namespace description", t.Description, maxToolBytes)
}

func checkTool(t event.ClientTool, namespace string, seen map[string]bool) error {
	if err := checkIdentifier("dynamic tool name", t.Name, maxToolName); err != nil {
		return err
	}
	switch {
	case reservedName(t.Name):
		return thole.Errorf(thole.CodeInvalid, "dynamic tool name is reserved: %s", t.Name)
	case seen[t.Name] && namespace != "":
		return thole.Errorf(thole.CodeInvalid, "duplicate dynamic tool name in namespace %s: %s", namespace, t.Name)
	case seen[t.Name]:
		return thole.Errorf(thole.CodeInvalid, "duplicate dynamic tool name: %s", t.Name)
	case t.Deferred && namespace == "":
		return thole.Errorf(thole.CodeInvalid, "deferred dynamic tool must include a namespace: %s", t.Name)
	}
	seen[t.Name] = true
	if err := checkText("dynamic tool description", t.Description, maxToolBytes); err != nil {
		return err
	}
	if err := checkSchema(t.Schema); err != nil {
		return thole.Errorf(thole.CodeInvalid, "dynamic tool input schema is not supported for %s: %w", t.Name, err)
	}
	return nil
}

func reservedName(name string) bool { return name == "mcp" || strings.HasPrefix(name, "mcp__") }

func checkIdentifier(what, name string, limit int) error {
	quoted := strings.Trim(strconv.QuoteToASCII(name), `"`)
	switch trimmed := strings.TrimSpace(name); {
	case trimmed == "":
		return thole.Errorf(thole.CodeInvalid, "%s must not be empty", what)
	case trimmed != name:
		return thole.Errorf(thole.CodeInvalid, "%s has leading/trailing whitespace: %s", what, quoted)
	case strings.Trim(name, identifierAlphabet) != "":
		return thole.Errorf(thole.CodeInvalid, "%s must match %s to match Responses API: %s", what, identifierOfTools, quoted)
	case len(name) > limit:
		return thole.Errorf(thole.CodeInvalid, "%s must be at most %d characters to match Responses API: %s", what, limit, quoted)
	}
	return nil
}

// checkOutputSchema refuses a schema that no agent can answer by: they all want an object.
func checkOutputSchema(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var root struct {
		Type json.RawMessage `json:"type"`
	}
	err := checkSchema(raw)
	if err == nil && (strictjson.Unmarshal(raw, &root) != nil || string(root.Type) != `"object"`) {
		err = thole.Errorf(thole.CodeInvalid, "its type is not object")
	}
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "invalid outputSchema: %w", err).WithHint(`give a JSON schema such as {"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
	}
	return nil
}

// checkSchema refuses what is no JSON schema of an object. It looks at the keywords that
// shape values; what they mean together is the agent's to judge.
func checkSchema(raw json.RawMessage) error {
	if len(raw) > maxSchema {
		return thole.Errorf(thole.CodeInvalid, "a schema of %d bytes; at most %d are taken", len(raw), maxSchema)
	}
	var root map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &root) != nil || root == nil {
		return thole.Errorf(thole.CodeInvalid, "a schema is a JSON object")
	}
	if string(root["type"]) == `"null"` {
		return thole.Errorf(thole.CodeInvalid, "tool input schema must not be a singleton null type")
	}
	return checkKeywords(root, "", 0)
}

// typeWords are those that a schema's type may be.
var typeWords = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func checkKeywords(schema map[string]json.RawMessage, path string, depth int) error {
	if depth > maxSchemaDepth {
		return thole.Errorf(thole.CodeInvalid, "a schema is at most %d levels deep", maxSchemaDepth)
	}
	wrong := func(keyword, want string) error {
		return thole.Errorf(thole.CodeInvalid, "%s of the schema%s is not %s", keyword, path, want)
	}
	for keyword, raw := range schema {
		at := path + "/" + keyword
		switch keyword {
		case "type":
			if !isType(raw) {
				return wrong(keyword, "one of "+strings.Join(typeWords, ", ")+" or a list of them")
			}
		case "required":
			var names []string
			if strictjson.Unmarshal(raw, &names) != nil || names == nil {
				return wrong(keyword, "a list of names")
			}
		case "enum":
			var values []json.RawMessage
			if strictjson.Unmarshal(raw, &values) != nil || len(values) == 0 {
				return wrong(keyword, "a list of values")
			}
		case "properties", "patternProperties", "definitions", "$defs":
			var all map[string]json.RawMessage
			if strictjson.Unmarshal(raw, &all) != nil || all == nil {
				return wrong(keyword, "an object of schemas")
			}
			for name, one := range all {
				if err := checkPart(one, at+"/"+name, depth); err != nil {
					return err
				}
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			var all []json.RawMessage
			if strictjson.Unmarshal(raw, &all) != nil || len(all) == 0 {
				return wrong(keyword, "a list of schemas")
			}
			for i, one := range all {
				if err := checkPart(one, at+"/"+strconv.Itoa(i), depth); err != nil {
					return err
				}
			}
		case "items", "additionalProperties", "not", "contains", "propertyNames":
			if err := checkPart(raw, at, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPart looks at a schema inside of another, which may be true or false too.
func checkPart(raw json.RawMessage, path string, depth int) error {
	var yes bool
	if strictjson.Unmarshal(raw, &yes) == nil {
		return nil
	}
	var schema map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &schema) != nil || schema == nil {
		return thole.Errorf(thole.CodeInvalid, "the schema%s is neither an object nor a boolean", path)
	}
	return checkKeywords(schema, path, depth+1)
}

func isType(raw json.RawMessage) bool {
	var word string
	if strictjson.Unmarshal(raw, &word) == nil {
		return slices.Contains(typeWords, word)
	}
	var words []string
	return strictjson.Unmarshal(raw, &words) == nil && len(words) > 0 &&
		!slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(typeWords, w) })
}
