package appserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	clis "github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
)

// own takes over what only Codex itself understands: its tier of service, its summaries
// of reasoning, its switch for the network. Threads of other agents refuse it unless it
// says what they do anyway.
func (s *Server) own(w wish, out *event.Settings, now event.Settings) error {
	agent := cmp.Or(out.Provider, now.Provider, s.catalog.provider())
	options := map[string]string{}
	take := func(member, option, value string, same ...string) error {
		switch {
		case value == "" || slices.Contains(same, value) && now.Options[option] == "":
		case agent == clis.Contract:
			options[option] = value
		case !slices.Contains(same, value):
			return thole.Errorf(thole.CodeUnsupported, "%s %q: %s has no such setting", member, value, agent).WithHint("leave %s out", member)
		}
		return nil
	}
	if err := take("serviceTier", provider.OptionServiceTier, str(w.ServiceTier), "default", "auto"); err != nil {
		return err
	}
	if err := take("summary", provider.OptionSummary, str(w.summary), "auto", "none"); err != nil {
		return err
	}
	if agent == clis.Contract && str(w.webSearch) != "" { // older terminals send their own to every thread; other agents have none
		options[provider.OptionWebSearch] = *w.webSearch
	}
	switch str(w.ApprovalsReviewer) {
	case "", "user":
	default:
		return thole.Errorf(thole.CodeUnsupported, "approvalsReviewer %q: a person reviews what an agent asks for", str(w.ApprovalsReviewer)).
			WithHint("leave it out, or choose a profile that asks less")
	}
	if w.network != nil && *w.network != networked(agent, now) {
		switch {
		case agent == clis.Contract:
			options[provider.OptionNetwork] = strconv.FormatBool(*w.network)
		case *w.network:
			return thole.Errorf(thole.CodeForbidden, "networkAccess: the thread's network is narrowed to %s", now.Network.Policy).
				WithHint("thole thread network changes it")
		default:
			out.Network = &event.NetworkPolicy{Policy: "gateway"}
		}
	}
	if len(options) > 0 {
		out.Options = options
	}
	return nil
}

// networked reports whether commands of a thread may use the network: with Codex by its
// own switch, with others unless the thread's policy leaves only the agent's models.
func networked(agent string, now event.Settings) bool {
	if agent == clis.Contract {
		return now.Options[provider.OptionNetwork] == "true"
	}
	return now.Network == nil || now.Network.Policy != "gateway" && now.Network.Policy != "none"
}

// configured reads the config of a request, keys of Codex's configuration with dots or
// nested, into the wish. Keys that nobody here honours are refused by name.
func (w *wish) configured(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	keys := map[string]json.RawMessage{}
	if err := flatten("", raw, keys); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if server, ok := strings.CutPrefix(name, "mcp_servers."); ok {
			if err := w.server(server, keys[name]); err != nil {
				return err
			}
			continue
		}
		if err := w.key(name, keys[name]); err != nil {
			return err
		}
	}
	return nil
}

// flatten lists the leaves of an object by their names with dots. Empty objects and
// lists ask for nothing.
func flatten(prefix string, raw json.RawMessage, into map[string]json.RawMessage) error {
	var members map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &members) != nil {
		if prefix == "" {
			return invalid("invalid type: config is not an object")
		}
		if text := string(raw); text != "null" && text != "[]" {
			into[prefix] = raw
		}
		return nil
	}
	for name, v := range members {
		if prefix != "" {
			name = prefix + "." + name
		}
		if err := flatten(name, v, into); err != nil {
			return err
		}
	}
	return nil
}

// key honours one key of a config. Members of the request itself go before it.
func (w *wish) key(name string, raw json.RawMessage) error {
	wrong := func() error { return thole.Errorf(thole.CodeInvalid, "config.%s: %s is not a value for it", name, raw) }
	if name == "sandbox_workspace_write.network_access" {
		var yes bool
		if strictjson.Unmarshal(raw, &yes) != nil {
			return wrong()
		}
		if w.network == nil {
			w.network = &yes
		}
		return nil
	}
	into := map[string]**string{
		"model": &w.Model, "model_provider": &w.ModelProvider, "model_reasoning_effort": &w.effort, "model_reasoning_summary": &w.summary,
		"service_tier": &w.ServiceTier, "approvals_reviewer": &w.ApprovalsReviewer, "web_search": &w.webSearch,
	}[name]
	var text string
	switch {
	case idle(name):
		return nil
	case name == "approval_policy":
		if w.ApprovalPolicy == nil {
			w.ApprovalPolicy = raw
		}
		return nil
	case into == nil && name != "sandbox_mode" && name != "developer_instructions":
		return thole.Errorf(thole.CodeUnsupported, "config.%s is not supported: an agent has the configuration of its user", name).
			WithHint("set it there; thole provider config shows what reaches the agent")
	case strictjson.Unmarshal(raw, &text) != nil:
		return wrong()
	case name == "sandbox_mode":
		w.sandbox = cmp.Or(w.sandbox, text)
	case name == "developer_instructions":
		w.instructions = cmp.Or(w.instructions, text)
	case *into == nil:
		*into = &text
	}
	return nil
}

// idle reports whether a key changes nothing here. Clients send these with every thread.
func idle(key string) bool {
	switch key {
	case "personality", // Codex ignores it too
		"skills.config",                    // an agent has the skills of its user and of its workspace
		"features.rmcp_client",             // tool servers are called over HTTP anyway
		"features.cwd_relative_turn_diffs": // diffs are relative to the directory in which the agent works
		return true
	}
	// The profile and the box decide what a project may do.
	return strings.HasPrefix(key, "projects.") && strings.HasSuffix(key, ".trust_level")
}
