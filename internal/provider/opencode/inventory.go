package opencode

import (
	"context"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/provider"
)

// states are the states of a server in the words of the port.
var states = map[string]string{
	"connected": "connected", "failed": "failed", "disabled": "disabled", "needs_auth": "authenticationRequired", "needs_client_registration": "authenticationRequired",
}

// Inventory implements provider.Inventoried. opencode has plugins in the place of hooks,
// and names no tools of its servers.
func (s *session) Inventory(ctx context.Context) (provider.Inventory, error) {
	var out provider.Inventory
	srv, err := s.Present()
	if err != nil {
		return out, err
	}
	var skills []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Location    string `json:"location"`
	}
	if err := srv.call(ctx, http.MethodGet, "/skill", nil, &skills); err != nil {
		return out, err
	}
	for _, k := range skills {
		scope := "user"
		switch {
		case !filepath.IsAbs(k.Location): // <built-in>
			scope = "system"
		case strings.HasPrefix(k.Location, s.Cfg.Dir+"/"):
			scope = "repo"
		}
		out.Skills = append(out.Skills, provider.Skill{Name: k.Name, Description: k.Description, Path: k.Location, Scope: scope})
	}
	var servers map[string]struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if err := srv.call(ctx, http.MethodGet, "/mcp", nil, &servers); err != nil {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		one := servers[name]
		m := provider.MCPServer{Name: name, State: states[one.Status], Problem: one.Error, Auth: "unknown"}
		if m.State == "connected" {
			m.Problem = "opencode does not name the tools of its servers"
		}
		if m.State == "authenticationRequired" {
			m.Auth = "notLoggedIn"
		}
		out.Servers = append(out.Servers, m)
	}
	return out, nil
}
