package appserver

import (
	"cmp"
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	clis "github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/protocol/app"
)

// registerCatalog serves what clients ask when they start. Constants is the part
// of it that has no meaning here and always answers the same.
func (s *Server) registerCatalog() {
	on(s, "model/list", func(ctx context.Context, c *conn, p *app.ModelListParams) (answer, error) {
		s.cfg.Settle()
		def, err := s.defaults(ctx, c)
		if err != nil {
			return answer{}, err
		}
		models := s.catalog.list(def)
		if c.peer().info.Name == terminal {
			if models, err = s.canHave(ctx, c, models); err != nil {
				return answer{}, err
			}
		}
		models, next, err := paged(models, app.ListParams{Cursor: p.Cursor, Limit: p.Limit})
		return result(app.ModelListResult{Data: models, NextCursor: next}, err)
	})
	on(s, "permissionProfile/list", func(_ context.Context, _ *conn, p *app.ListParams) (answer, error) {
		out := app.ProfileListResult{Data: []app.ProfileSummary{}}
		for _, p := range permissionProfiles {
			out.Data = append(out.Data, app.ProfileSummary{ID: p.id, Description: &p.about, Allowed: true})
		}
		var err error
		out.Data, out.NextCursor, err = paged(out.Data, *p)
		return result(out, err)
	})
	on(s, "collaborationMode/list", func(context.Context, *conn, *app.Empty) (answer, error) {
		return answer{result: app.CollaborationModeList{Data: []app.CollaborationModeInfo{
			{Name: "Plan", Mode: "plan"}, {Name: "Default", Mode: "default"},
		}}}, nil
	})
	on(s, "modelProvider/capabilities/read", func(ctx context.Context, c *conn, _ *app.Empty) (answer, error) {
		def, err := s.defaults(ctx, c)
		name := cmp.Or(def.Provider, s.catalog.provider())
		return result(app.ModelProviderCapabilities{WebSearch: clis.Of(name).Searches}, err)
	})
	s.registerConfig()
	s.registerInventory()
	for name, body := range Constants() {
		raw := json.RawMessage(body)
		s.methods[name].run = func(context.Context, *conn, any) (answer, error) { return answer{result: raw}, nil }
	}
	for name, why := range Refused() {
		s.methods[name].run = func(context.Context, *conn, any) (answer, error) { return answer{}, why }
	}
	s.registerAccount()
}

// Refused are the methods that clients have a use for and thole has not, with
// what their users read.
func Refused() map[string]*thole.Error {
	return map[string]*thole.Error{
		"account/rateLimits/read": thole.Errorf(thole.CodeInvalid, "codex account authentication required to read rate limits"),
		"account/usage/read":      thole.Errorf(thole.CodeInvalid, "codex account authentication required to read token usage"),
		"config/mcpServer/reload": thole.Errorf(thole.CodeUnsupported, "an agent reads its servers when its session starts").WithHint("thole thread close ends the session; the next message starts another"),
		"mcpServer/oauth/login":   thole.Errorf(thole.CodeUnsupported, "a sign-in of a server needs the browser of its user").WithHint("give the server a token in the agent's own configuration, and name it in providers.mcp_secrets"),
	}
}

// Constants are the methods that always answer the same, with their answers:
// clients ask for things of Codex that thole does not have.
func Constants() map[string]string {
	return map[string]string{
		"account/bedrock/checkGovCloudRequirements": `{"isGovCloud":false,"shouldWarn":false}`,
		"configRequirements/read":                   `{"supportsIndependentSpeedModes":false,"requirements":{"allowedApprovalsReviewers":["user"]}}`,
		"experimentalFeature/list":                  `{"data":[],"nextCursor":null}`,
		"plugin/list":                               `{"marketplaces":[],"marketplaceLoadErrors":[],"featuredPluginIds":[]}`,
	}
}
