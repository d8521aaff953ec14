package mcp

import (
	"encoding/json"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// Tools are those of the server, for people who ask what an agent has: it answers agents
// only during their turns.
func Tools() (out []provider.MCPTool, err error) {
	for _, one := range list {
		raw, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		var t struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Input       json.RawMessage `json:"inputSchema"`
		}
		if err := strictjson.Unmarshal(raw, &t); err != nil {
			return nil, err
		}
		out = append(out, provider.MCPTool{Name: t.Name, Description: t.Description, Input: t.Input})
	}
	return out, nil
}
