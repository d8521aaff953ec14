package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
)

const (
	// maxOutput is the most that a model generates in one call, for clients that name no
	// limit.
	maxOutput = 128_000
	// maxInput is the longest context of any model: more is refused upstream and costs
	// nothing.
	maxInput = 2_000_000
)

// request is what the gateway reads of a body.
type request struct {
	body   []byte
	model  string
	at     [2]int // where the model is written in the body
	limit  int64  // upper bound of output tokens
	n      int64  // answers that are generated side by side
	stream bool
}

// limits are the members that bound the output in a dialect. One of another dialect is
// passed over by many services, and would make a long answer look short to us.
var limits = map[Dialect][]string{
	Anthropic: {"max_tokens"}, Responses: {"max_output_tokens"}, Chat: {"max_tokens", "max_completion_tokens"},
}

// parseRequest reads a body and refuses what the grants do not cover.
func parseRequest(d Dialect, body []byte, g Grants) (*request, *refusal) {
	members, err := membersOf(body)
	if err != nil {
		return nil, refuse(invalid, "request body: %v", err)
	}
	q := &request{body: body, limit: maxOutput, n: 1}
	var most int64
	for _, m := range members {
		value := m.Value
		name, f := knownMember(m.Name)
		if f != nil {
			return nil, f
		}
		switch name {
		case "model":
			q.at = [2]int{m.Start, m.Start + len(value)}
			if strictjson.Unmarshal(value, &q.model) != nil || q.model == "" || len(q.model) > 256 {
				return nil, refuse(invalid, "model: must be a name")
			}
			if !g.Tools && strings.HasSuffix(strings.ToLower(q.model), ":online") { // OpenRouter's web search
				return nil, refuse(invalid, "model %.100q searches the web, which is not granted to this executor", q.model)
			}
		case "max_tokens", "max_output_tokens", "max_completion_tokens", "n":
			if string(value) == "null" {
				continue
			}
			n, err := strconv.ParseInt(string(value), 10, 32)
			if err != nil || n < 1 {
				return nil, refuse(invalid, "%s: must be a whole number from 1 on", name)
			}
			switch {
			case name == "n":
				q.n = n
			case slices.Contains(limits[d], name):
				most = max(most, n)
			}
		case "stream":
			if strictjson.Unmarshal(value, &q.stream) != nil {
				return nil, refuse(invalid, "stream: must be true or false")
			}
		default:
			if f := ungranted(d, name, value, g); f != nil {
				return nil, f
			}
			if slices.Contains(conversation, name) {
				if f := ungrantedContent(value, g, 0); f != nil {
					return nil, f
				}
			}
		}
	}
	if q.model == "" {
		return nil, refuse(invalid, "model: a name is required")
	}
	if most > 0 {
		q.limit = most
	}
	q.limit *= q.n
	return q, nil
}

func membersOf(body []byte) ([]strictjson.Member, error) {
	v, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}
	return v.Members()
}

// members are the names that the gateway acts upon, stored and tools those among them that
// a grant covers, and never those that no grant covers: they would let a client choose
// the address, the credential or the model at a proxy that stands upstream.
var (
	read   = []string{"model", "input", "messages", "system", "max_tokens", "max_output_tokens", "max_completion_tokens", "n", "stream"}
	stored = []string{"store", "background", "previous_response_id", "conversation", "prompt", "container"}
	tools  = []string{"tools", "functions", "mcp_servers", "web_search_options", "plugins", "web_search"}
	never  = []string{
		"api_base", "base_url", "api_key", "api_version", "api_type", "headers", "extra_headers", "extra_query", "extra_body",
		"organization", "custom_llm_provider", "model_list", "fallbacks", "context_window_fallback_dict", "models", "preset",
		"best_of", "deployment_id", "vertex_credentials", "vertex_project", "vertex_location", "aws_region_name", "aws_bedrock_runtime_endpoint",
		"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "mock_response", "user_config",
	}
	members = slices.Concat(read, stored, tools, never)
)

// knownMember returns name, and refuses one that another reader would take for a name
// that we act upon.
func knownMember(name string) (string, *refusal) {
	for _, known := range members {
		if strings.EqualFold(name, known) && name != known {
			return "", refuse(invalid, "unknown member %q; it is called %q", name, known)
		}
	}
	if slices.Contains(never, name) {
		return "", refuse(invalid, "%s: not accepted by the gateway, which chooses the upstream itself", name)
	}
	return name, nil
}

// ungranted refuses a member that a grant would have to cover.
func ungranted(d Dialect, name string, value strictjson.Value, g Grants) *refusal {
	empty := slices.Contains([]string{"null", "false", "[]", "{}", `""`}, string(value))
	switch {
	case empty:
	case !g.Stored && slices.Contains(stored, name):
		return refuse(invalid, "%s: state at the model service is not granted to this executor", name)
	case !g.Tools && name == "tools":
		return ungrantedTools(d, value, 0)
	case name == "input" && value[0] == '[':
		return ungrantedItems(value, g)
	case !g.Tools && name != "functions" && slices.Contains(tools, name):
		return refuse(invalid, "%s: tools that run at the model service are not granted to this executor", name)
	}
	return nil
}

// ungrantedItems refuses what an item of the input brings in besides text: more tools, or
// an item that is stored at the service.
func ungrantedItems(list strictjson.Value, g Grants) *refusal {
	all, err := list.Elements()
	if err != nil {
		return refuse(invalid, "input: %v", err)
	}
	for _, item := range all {
		members, err := item.Members()
		if err != nil {
			return refuse(invalid, "input: %v", err)
		}
		for _, m := range members {
			switch {
			case m.Name == "tools" && !g.Tools:
				if f := ungrantedTools(Responses, m.Value, 0); f != nil {
					return f
				}
			case m.Name == "type" && !g.Stored:
				var kind string
				if strictjson.Unmarshal(m.Value, &kind) != nil || kind == "item_reference" {
					return refuse(invalid, "input: an item of type %s is not granted to this executor", m.Value)
				}
			case m.Name != "type" && strings.EqualFold(m.Name, "type"), m.Name != "tools" && strings.EqualFold(m.Name, "tools"):
				return refuse(invalid, "input: unknown member %q", m.Name)
			}
		}
	}
	return nil
}

// local are the types of tools that the client runs itself, or that see nothing but the
// request. The dates at the end of Anthropic's are left out.
var local = map[Dialect][]string{
	Anthropic: {"", "custom", "bash", "text_editor", "memory", "tool_search_tool_regex", "tool_search_tool_bm25"},
	Responses: {"function", "custom", "tool_search", "local_shell", "apply_patch", "namespace", "shell"},
	Chat:      {"function", "custom"},
}

// ungrantedTools refuses every tool that is not known to run at the client.
func ungrantedTools(d Dialect, list strictjson.Value, depth int) *refusal {
	all, err := list.Elements()
	if depth > 4 { // each level is read again by the one above it
		err = errors.New("nested too deep")
	}
	if err != nil {
		return refuse(invalid, "tools: %v", err)
	}
	for _, t := range all {
		var kind, environment string
		members, err := t.Members()
		for _, m := range members {
			switch {
			case err != nil:
			case m.Name == "type":
				err = strictjson.Unmarshal(m.Value, &kind)
			case m.Name == "environment": // of a shell: local, or a container of theirs
				environment = string(m.Value)
			case m.Name == "tools": // of a namespace
				if f := ungrantedTools(d, m.Value, depth+1); f != nil {
					return f
				}
			case strings.EqualFold(m.Name, "type"), strings.EqualFold(m.Name, "tools"), strings.EqualFold(m.Name, "environment"):
				err = fmt.Errorf("unknown member %q", m.Name)
			}
		}
		if err != nil {
			return refuse(invalid, "tools: %v", err)
		}
		known := kind
		if d == Anthropic {
			known = strings.TrimSuffix(strings.TrimRight(kind, "0123456789"), "_")
		}
		if !slices.Contains(local[d], known) || kind == "shell" && environment != `{"type":"local"}` {
			return refuse(invalid, "tool %q runs at the model service and is not granted to this executor", kind)
		}
	}
	return nil
}

// named returns the body for an upstream that calls the model something else.
func (q *request) named(model string) []byte {
	if model == q.model {
		return q.body
	}
	name, _ := json.Marshal(model) // a string
	return slices.Concat(q.body[:q.at[0]], name, q.body[q.at[1]:])
}

// inputEstimate is an upper bound of the tokens in a body. Text has seldom more than one
// token for two bytes. Images and documents come as long base64 texts, which are counted
// by what is known of them: thousands of bytes for a token of an image, a hundred for one
// of a document. They count so only under the names that services have for them: as text
// they are text.
func inputEstimate(body []byte) int64 {
	const long, bytesPerToken, dataPerToken = 4096, 2, 64
	var data int64
	for rest := body; ; {
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		end := endOfText(rest)
		if end >= long && slices.Contains(encoded, nameBefore(body[:len(body)-len(rest)-1])) && base64Only(rest[:end]) {
			data += int64(end)
		}
		rest = rest[min(end+1, len(rest)):]
	}
	return min(maxInput, (int64(len(body))-data)/bytesPerToken+data/dataPerToken+1)
}

// encoded are the members whose value is data or sealed text.
var encoded = []string{"data", "url", "image_url", "file_data", "signature", "encrypted_content"}

// nameBefore returns the name of the member whose value begins after b, "" in a list.
func nameBefore(b []byte) string {
	const space = " \t\r\n"
	b, named := bytes.CutSuffix(bytes.TrimRight(b, space), []byte{':'})
	b, text := bytes.CutSuffix(bytes.TrimRight(b, space), []byte{'"'})
	start := bytes.LastIndexByte(b[max(0, len(b)-32):], '"')
	if !named || !text || start < 0 {
		return ""
	}
	return string(b[max(0, len(b)-32)+start+1:])
}

// endOfText returns where the quote is that ends a text.
func endOfText(b []byte) int {
	for i := 0; i < len(b); {
		n := bytes.IndexAny(b[i:], `"\`)
		if n < 0 {
			break
		}
		if i += n; b[i] == '"' {
			return i
		}
		i += 2
	}
	return len(b)
}

func base64Only(b []byte) bool {
	if i := bytes.Index(b[:min(len(b), 128)], []byte(";base64,")); i >= 0 { // of a data: URL
		b = b[i+len(";base64,"):]
	}
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return true
}

// serves reports whether an upstream has a model.
func (u Upstream) serves(model string) bool {
	return len(u.Models) == 0 || slices.ContainsFunc(u.Models, func(p string) bool { return matchModel(p, model) })
}

// matchModel compares a name with a pattern in which * stands for any text.
func matchModel(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

// bound caps a sum of tokens, so that no hostile number overflows.
func bound(n int64) int64 { return min(max(n, 0), math.MaxInt32) }

func (u Upstream) String() string { return fmt.Sprintf("%s (%s)", u.Name, u.Base.Host) }
