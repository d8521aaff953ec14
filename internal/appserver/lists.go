package appserver

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/protocol/app"
)

// registerCatalog serves what clients ask when they start. Constants is the part
// of it that has no meaning here and always answers the same.
func (s *Server) registerCatalog() {
	on(s, "model/list", func(ctx context.Context, c *conn, _ *app.ModelListParams) (answer, error) {
		s.cfg.Settle()
		def, err := s.defaults(ctx, c)
		return result(app.ModelListResult{Data: s.catalog.list(def)}, err)
	})
	on(s, "permissionProfile/list", func(context.Context, *conn, *app.Empty) (answer, error) {
		out := app.ProfileListResult{Data: []app.ProfileSummary{}}
		for _, p := range permissionProfiles {
			out.Data = append(out.Data, app.ProfileSummary{ID: p.id, Description: &p.about, Allowed: true})
		}
		return answer{result: out}, nil
	})
	on(s, "collaborationMode/list", func(context.Context, *conn, *app.Empty) (answer, error) {
		return answer{result: app.CollaborationModeList{Data: []app.CollaborationModeInfo{
			{Name: "Plan", Mode: "plan"}, {Name: "Default", Mode: "default"},
		}}}, nil
	})
	s.registerConfig()
	for name, body := range Constants() {
		raw := json.RawMessage(body)
		s.methods[name].run = func(context.Context, *conn, any) (answer, error) { return answer{result: raw}, nil }
	}
	for name, why := range Refused() {
		s.methods[name].run = func(context.Context, *conn, any) (answer, error) { return answer{}, why }
	}
}

// Refused are the methods that clients have a use for and thole has not, with
// what their users read.
func Refused() map[string]*thole.Error {
	return map[string]*thole.Error{
		"account/rateLimits/read": thole.Errorf(thole.CodeInvalid, "codex account authentication required to read rate limits"),
		"command/exec":            thole.Errorf(thole.CodeUnsupported, "thole runs commands in a thread's workspace only; type !git diff, for example"),
		"thread/goal/set":         thole.Errorf(thole.CodeUnsupported, "thole keeps no goals; say it in a message"),
	}
}

// Constants are the methods that always answer the same, with their answers:
// clients ask for things of Codex that thole does not have.
func Constants() map[string]string {
	return map[string]string{
		"account/read": `{"account":null,"requiresOpenaiAuth":false,"workspaceRouting":null}`,
		"account/bedrock/checkGovCloudRequirements": `{"isGovCloud":false,"shouldWarn":false}`,
		"configRequirements/read":                   `{"supportsIndependentSpeedModes":false,"requirements":null}`,
		"getAuthStatus":                             `{"authMethod":null,"authToken":null,"requiresOpenaiAuth":false}`,
		"modelProvider/capabilities/read":           `{"imageGeneration":false,"webSearch":false}`,
		"experimentalFeature/list":                  `{"data":[],"nextCursor":null}`,
		"mcpServerStatus/list":                      `{"data":[],"nextCursor":null}`,
		"skills/list":                               `{"data":[]}`,
		"hooks/list":                                `{"data":[]}`,
		"plugin/list":                               `{"marketplaces":[],"marketplaceLoadErrors":[],"featuredPluginIds":[]}`,
	}
}
