package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/ownconfig"
)

// OwnConfig reads what sessions of a CLI get of the configuration of the user of this machine.
type OwnConfig func(cli string) ownconfig.Config

// ownConfig is that without any value: names of files, keys and servers.
type ownConfig struct {
	Provider string `json:"provider"`
	Off      bool   `json:"off,omitempty" doc:"sessions get nothing of the user's own configuration"`
	// Keys are without the values, which may be secrets.
	Keys  []ownconfig.Line `json:"keys" doc:"each file and key of the user's, and what becomes of it"`
	Files []laidFile       `json:"files" doc:"what a session gets"`
	// Servers are those that the session would start.
	Servers []mcpServer `json:"servers"`
	Skills  []string    `json:"skills"`
}

type laidFile struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

type mcpServer struct {
	Name   string `json:"name"`
	Origin string `json:"origin,omitempty" doc:"of one that is reached by HTTP; others run in the box"`
	Off    bool   `json:"off,omitempty"`
}

func (s *Server) ownConfigRoutes() {
	op(s, "GET", "/providers/{provider}/config", "What a session gets of the user's own configuration of an agent CLI", 200, func(ctx context.Context, in *struct {
		Provider string `path:"provider" maxLength:"100"`
	}) (*body[ownConfig], error) {
		// What the user of this machine has written goes into their own threads alone.
		if _, ok := ownconfig.Of(in.Provider); !ok || actorOf(ctx).User != thole.LocalUser {
			return nil, thole.Errorf(thole.CodeNotFound, "no configuration of %q", in.Provider)
		}
		out := ownConfig{Provider: in.Provider, Keys: []ownconfig.Line{}, Files: []laidFile{}, Servers: []mcpServer{}, Skills: []string{}}
		if s.cfg.OwnConfig == nil {
			out.Off = true
			return answer(out, nil)
		}
		got := s.cfg.OwnConfig(in.Provider)
		out.Keys = append(out.Keys, got.Lines...)
		for _, f := range got.Show() {
			out.Files = append(out.Files, laidFile{f.Path, f.Bytes})
		}
		has := got.Inventory(in.Provider).Bounded()
		for _, m := range has.Servers {
			out.Servers = append(out.Servers, mcpServer{m.Name, m.Origin, m.State == "disabled"})
		}
		for _, k := range has.Skills {
			out.Skills = append(out.Skills, k.Name)
		}
		return answer(out, nil)
	})
}
