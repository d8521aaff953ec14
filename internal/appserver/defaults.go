package appserver

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// Defaults keep what a user's new threads start with where their maker does not
// say: provider, model and effort.
type Defaults interface {
	Load(ctx context.Context, user thole.UserID) (event.Settings, error)
	Save(ctx context.Context, user thole.UserID, s event.Settings) error
}

func (s *Server) registerConfig() {
	inConfig(on(s, "config/read", s.configRead), serial.Shared)
	inConfig(on(s, "config/batchWrite", func(ctx context.Context, c *conn, p *app.ConfigBatchWriteParams) (answer, error) {
		return s.configWrite(ctx, c, p.Edits, p.ExpectedVersion, p.FilePath)
	}), serial.Exclusive)
	inConfig(on(s, "config/value/write", func(ctx context.Context, c *conn, p *app.ConfigEdit) (answer, error) {
		return s.configWrite(ctx, c, []app.ConfigEdit{*p}, p.ExpectedVersion, p.FilePath)
	}), serial.Exclusive)
}

// defaults is what the connection's user chose, as far as it can still run.
func (s *Server) defaults(ctx context.Context, c *conn) (event.Settings, error) {
	if s.cfg.Defaults == nil {
		return event.Settings{}, nil
	}
	def, err := s.cfg.Defaults.Load(ctx, c.actor.User)
	if err != nil || def.Provider == "" {
		return def, err
	}
	for _, info := range s.cfg.Providers() {
		if info.Name == def.Provider && info.Available {
			return def, nil
		}
	}
	return event.Settings{}, nil
}

// configRead returns what a new thread starts with. A directory that a client names is
// trusted: what its files may do is decided by the profile and the box, not by the terminal
// that asks, and of a directory elsewhere nothing is seen here. A terminal whose directory is
// not trusted begins no thread before its user has it recorded, which nothing here needs.
func (s *Server) configRead(ctx context.Context, c *conn, p *app.ConfigReadParams) (answer, error) {
	var projects map[string]app.ProjectTrust
	if dir := str(p.Cwd); dir != "" {
		projects = map[string]app.ProjectTrust{dir: {TrustLevel: "trusted"}}
	}
	def, err := s.defaults(ctx, c)
	name := cmp.Or(def.Provider, s.catalog.provider())
	approval, sandbox := words(name, s.cfg.DefaultProfile)
	model := s.catalog.wireModel(name, def.Model)
	out := app.ConfigReadResult{
		Config:  app.Config{Model: &model, ModelProvider: &name, ApprovalPolicy: &approval, SandboxMode: &sandbox, Effort: ptr(def.Effort), Projects: projects},
		Origins: map[string]app.ConfigOrigin{},
	}
	chosen := event.Settings{}
	if s.cfg.Defaults != nil && err == nil {
		chosen, err = s.cfg.Defaults.Load(ctx, c.actor.User)
	}
	own := s.layer(chosen)
	for key := range own.Config {
		out.Origins[key] = own.ConfigOrigin
	}
	if p.IncludeLayers {
		out.Layers = []app.ConfigLayer{own}
	}
	return result(out, err)
}

// layer is the one layer of settings that there is: what the user chose.
func (s *Server) layer(def event.Settings) app.ConfigLayer {
	out := app.ConfigLayer{
		ConfigOrigin: app.ConfigOrigin{Name: app.ConfigSource{Type: "user", File: s.cfg.Home}, Version: configVersion(def)},
		Config:       map[string]string{},
	}
	if def.Provider != "" {
		out.Config["model"] = s.catalog.wireModel(def.Provider, def.Model)
	}
	if def.Effort != "" {
		out.Config["model_reasoning_effort"] = def.Effort
	}
	return out
}

// configWrite changes what new threads start with: all edits or none.
func (s *Server) configWrite(ctx context.Context, c *conn, edits []app.ConfigEdit, expected, file *string) (answer, error) {
	if s.cfg.Defaults == nil {
		return answer{}, thole.Errorf(thole.CodeUnsupported, "this server keeps no settings")
	}
	if file != nil && *file != s.cfg.Home {
		return answer{}, thole.Errorf(thole.CodeForbidden, "Only writes to the user config are allowed").WithHint("leave filePath out, or take the one that config/read names")
	}
	def, err := s.cfg.Defaults.Load(ctx, c.actor.User)
	if err != nil {
		return answer{}, err
	}
	if expected != nil && *expected != configVersion(def) {
		return answer{}, thole.Errorf(thole.CodeConflict, "the settings have changed since they were read").WithHint("read them again with config/read")
	}
	for _, e := range edits {
		if def, err = s.configEdit(def, e); err != nil {
			return answer{}, err
		}
	}
	if err := s.cfg.Defaults.Save(ctx, c.actor.User, def); err != nil {
		return answer{}, err
	}
	return answer{result: app.ConfigWriteResult{Status: "ok", Version: configVersion(def), FilePath: s.cfg.Home}}, nil
}

func (s *Server) configEdit(def event.Settings, e app.ConfigEdit) (event.Settings, error) {
	var value *string
	if len(e.Value) > 0 && strictjson.Unmarshal(e.Value, &value) != nil {
		return def, thole.Errorf(thole.CodeInvalid, "%s: a text is wanted", e.KeyPath)
	}
	switch e.KeyPath {
	case "model":
		def.Provider, def.Model = "", ""
		if value == nil {
			return def, nil
		}
		name, model, err := s.catalog.pick(*value, "", "")
		def.Provider, def.Model = cmp.Or(name, s.catalog.provider()), model
		return def, err
	case "model_reasoning_effort":
		def.Effort = str(value)
		return def, nil
	}
	return def, thole.Errorf(thole.CodeUnsupported, "thole keeps no setting %s; of Codex's it keeps model and model_reasoning_effort", e.KeyPath)
}

func configVersion(s event.Settings) string {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode([]string{s.Provider, s.Model, s.Effort})
	return hex.EncodeToString(h.Sum(nil))
}
