package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

const clientInstructions = "Tools of the program that the user works with. It runs them, outside of this sandbox."

// answerClient serves the tools of the thread's client.
func (s *Server) answerClient(w http.ResponseWriter, r *http.Request, c gateway.Claim, m message) {
	out := reply{ID: m.ID}
	switch m.Method {
	case "initialize":
		out.Result, out.Error = hello(m.Params, provider.ClientToolsName, clientInstructions)
	case "ping":
		out.Result = struct{}{}
	case "tools/list":
		th, err := s.cfg.Threads.Get(r.Context(), thole.SystemActor, c.Thread)
		if err != nil {
			out.Error = &failure{badMessage, "the thread cannot be read"}
			break
		}
		out.Result = map[string]any{"tools": listed(th.Tools)}
	case "tools/call":
		s.callClient(w, r, c, m)
		return
	default:
		out.Error = &failure{noMethod, "this server has no such method"}
	}
	write(w, http.StatusOK, out)
}

// listed are a client's tools as tools/list shows them. What they do is not known here.
func listed(tools []event.ClientTool) []any {
	all := provider.ClientTools(tools)
	out := []any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		out = append(out, map[string]any{"name": name, "description": t.Description, "inputSchema": inputSchema(t.Schema)})
	}
	return out
}

// inputSchema is a tool's schema as the protocol has it: of an object.
func inputSchema(raw json.RawMessage) any {
	var schema map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &schema) != nil || schema["type"] != nil {
		return raw
	}
	schema["type"] = json.RawMessage(`"object"`)
	return schema
}

// callClient makes a call an ask of the thread and answers with what the client's program
// returned. It waits as long as the asks of its kind do.
func (s *Server) callClient(w http.ResponseWriter, r *http.Request, c gateway.Claim, m message) {
	p, bad := callParams(m.Params)
	if bad != nil {
		write(w, http.StatusOK, reply{ID: m.ID, Error: bad})
		return
	}
	stream(w, r, p.Meta.Progress, "the client", func(ctx context.Context) reply {
		who, err := s.who(ctx, c)
		if err != nil {
			return reply{ID: m.ID, Result: s.result("", err, p.Name, c)}
		}
		tool, ok := provider.ClientTools(who.th.Tools)[p.Name]
		if !ok {
			return reply{ID: m.ID, Error: &failure{badParams, "this server has no such tool"}}
		}
		answer, err := s.cfg.Ask(ctx, c.Turn, event.Ask{
			ID: thole.NewID[thole.AskID](s.cfg.Now()), Kind: event.AskTool, Title: "Call " + tool.Name,
			Tool: &event.ToolCall{Name: tool.Name, Namespace: tool.Namespace, Input: p.Arguments},
		})
		if err != nil {
			return reply{ID: m.ID, Result: s.result("", err, p.Name, c)}
		}
		return reply{ID: m.ID, Result: provider.ReadToolAnswer(answer).MCP()}
	})
}

// toolParams are those of tools/call.
type toolParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		Progress json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

func callParams(raw json.RawMessage) (p toolParams, bad *failure) {
	if err := strictjson.Unmarshal(raw, &p); err != nil {
		return p, &failure{badParams, "tools/call: the parameters are not valid"}
	}
	p.Arguments = json.RawMessage(cmp.Or(string(p.Arguments), "{}"))
	return p, nil
}
