package codex

import (
	"context"
	"encoding/json"
	"errors"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/protocol/app"
)

// Inventory implements provider.Inventoried by codex's own methods.
func (s *session) Inventory(ctx context.Context) (provider.Inventory, error) {
	var out provider.Inventory
	l, err := s.Present()
	if err != nil {
		return out, err
	}
	var skills app.SkillsListResult
	if err := l.client.Call(ctx, "skills/list", app.SkillsListParams{Cwds: []string{s.Cfg.Dir}}, &skills); err != nil {
		return out, err
	}
	for _, e := range skills.Data {
		for _, k := range e.Skills {
			out.Skills = append(out.Skills, provider.Skill{Name: k.Name, Description: k.Description, Short: val(k.ShortDescription), Path: k.Path, Scope: k.Scope, Off: !k.Enabled})
		}
		for _, bad := range e.Errors {
			out.Warnings = append(out.Warnings, bad.Path+": "+bad.Message)
		}
	}
	native := s.NativeID()
	var hooks app.HooksListResult
	if err := l.client.Call(ctx, "hooks/list", app.HooksListParams{ThreadID: &native}, &hooks); err != nil {
		return out, err
	}
	for _, e := range hooks.Data {
		out.Warnings = append(out.Warnings, e.Warnings...)
		for _, bad := range e.Errors {
			out.Warnings = append(out.Warnings, bad.Path+": "+bad.Message)
		}
		for _, h := range e.Hooks {
			out.Hooks = append(out.Hooks, provider.Hook{Event: h.EventName, Matcher: val(h.Matcher), Kind: h.HandlerType, Command: h.Command, Server: h.Server, Tool: h.Tool,
				Path: h.SourcePath, Source: h.Source, Status: val(h.StatusMessage), Timeout: h.TimeoutSec, Async: val(h.Async), Off: !h.Enabled, Trust: h.TrustStatus, Key: h.Key, Hash: h.CurrentHash})
		}
	}
	servers := app.McpServerStatusListResult{}
	if err := l.client.Call(ctx, "mcpServerStatus/list", app.McpServerStatusListParams{ThreadID: &native}, &servers); err != nil {
		return out, err
	}
	for _, m := range servers.Data {
		one := provider.MCPServer{Name: m.Name, State: val(m.RuntimeStatus), Auth: m.AuthStatus, Problem: val(m.ToolsError), Origin: val(m.HTTPOrigin)}
		if m.ServerInfo != nil {
			one.Title, one.Version = m.ServerInfo.Name, m.ServerInfo.Version
		}
		for _, t := range m.Tools {
			one.Tools = append(one.Tools, provider.MCPTool{Name: t.Name, Title: val(t.Title), Description: val(t.Description), Input: t.InputSchema})
		}
		for _, r := range m.Resources {
			one.Resources = append(one.Resources, resource(r, r.URI))
		}
		for _, r := range m.ResourceTemplates {
			one.Templates = append(one.Templates, resource(r, r.URITemplate))
		}
		out.Servers = append(out.Servers, one)
	}
	return out, nil
}

// CallServer implements provider.Served by codex's own methods.
func (s *session) CallServer(ctx context.Context, call provider.ServerCall) (out json.RawMessage, err error) {
	l, err := s.Present()
	if err != nil {
		return nil, err
	}
	native := s.NativeID()
	if call.Tool == "" {
		err = l.client.Call(ctx, "mcpServer/resource/read", app.McpResourceReadParams{ThreadID: &native, Server: call.Server, URI: call.URI}, &out)
	} else {
		err = l.client.Call(ctx, "mcpServer/tool/call", app.McpServerToolCallParams{ThreadID: native, Server: call.Server, Tool: call.Tool, Arguments: call.Arguments, Meta: call.Meta}, &out)
	}
	var refused *appclient.Error
	if errors.As(err, &refused) {
		err = thole.Errorf(thole.CodeInvalid, "codex: %.500s", refused.Message)
	}
	return out, err
}

func resource(r app.McpResource, uri string) provider.MCPResource {
	return provider.MCPResource{Name: r.Name, URI: uri, Title: val(r.Title), Description: val(r.Description), MimeType: val(r.MimeType)}
}
