package upstream

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/strictjson"
)

const opencode = "opencode"

// chosen are the settings of a file that a session learns of. Others of it could run
// programs of this machine.
var chosen = []string{"model", "small_model", "disabled_providers", "enabled_providers"}

// ownOpencode is what opencode would do as the user runs it: the model providers of its
// settings, those that its login or the environment has a key for, and opencode's own
// without one.
func (r *Routes) ownOpencode(ctx context.Context) (all []way, own map[string]any, err error) {
	providers, own, err := r.opencodeSettings()
	if err != nil {
		return nil, nil, err
	}
	keys, err := r.cfg.Login.Entries(ctx, opencode, r.cfg.Login.Own(opencode))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	keyOf := func(s service) (key, origin string) {
		if key = keys[s.name]; key != "" {
			return key, "your login of opencode, " + s.name
		}
		return r.getenv(s.variable), "variable " + s.variable
	}
	for _, id := range sortedKeys(providers) {
		if w, ok, err := r.opencodeProvider(id, object(providers, id), keyOf); err != nil {
			return nil, nil, err
		} else if ok {
			all = append(all, w)
		}
	}
	for _, s := range append(slices.Clone(services), zen) {
		if providers[s.name] != nil {
			continue
		}
		if key, origin := keyOf(s); key != "" {
			all = append(all, keyWay(opencode, s, origin, constant(key)))
		} else if s == zen {
			w := keyWay(opencode, s, "no key: models that need none", constant("public"))
			w.info.Keyless = true
			all = append(all, w)
		}
	}
	off, _ := own["disabled_providers"].([]any)
	all = slices.DeleteFunc(all, func(w way) bool { return slices.Contains(off, any(w.info.Provider)) })
	return all, own, nil
}

// opencodeSettings are the model providers of opencode's settings and what else a
// session learns of them.
func (r *Routes) opencodeSettings() (providers, own map[string]any, err error) {
	providers, own = map[string]any{}, map[string]any{}
	dir := filepath.Join(cmp.Or(r.getenv("XDG_CONFIG_HOME"), filepath.Join(r.cfg.Login.Home, ".config")), opencode)
	for _, path := range []string{filepath.Join(dir, "config.json"), filepath.Join(dir, "opencode.json"), r.getenv("OPENCODE_CONFIG")} {
		if path == "" {
			continue
		}
		file, err := settings(path)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(providers, object(file, "provider"))
		for _, name := range chosen {
			if v := file[name]; v != nil {
				own[name] = v
			}
		}
	}
	if content := r.getenv("OPENCODE_CONFIG_CONTENT"); content != "" {
		// A person handed it to the server for its agents, so all of it counts.
		handed := map[string]any{}
		if err := strictjson.Unmarshal([]byte(content), &handed); err != nil {
			return nil, nil, thole.Errorf(thole.CodeInvalid, "read OPENCODE_CONFIG_CONTENT: %w", err)
		}
		maps.Copy(providers, object(handed, "provider"))
		delete(handed, "provider")
		maps.Copy(own, handed)
	}
	return providers, own, nil
}

// speaks are the dialects of the SDKs that a gateway can stand before.
var speaks = map[string]gateway.Dialect{"@ai-sdk/anthropic": gateway.Anthropic, "@ai-sdk/openai": gateway.Responses, "@ai-sdk/openai-compatible": gateway.Chat}

// opencodeProvider is a model provider of the settings. One that only opencode itself
// can reach is left out.
func (r *Routes) opencodeProvider(id string, p map[string]any, keyOf func(service) (string, string)) (w way, ok bool, err error) {
	s, known := serviceOf(id)
	if id == zen.name {
		s, known = zen, true
	}
	options := object(p, "options")
	if !known {
		s = service{name: id, dialect: gateway.Chat}
	}
	if npm := text(p, "npm"); npm != "" {
		if s.dialect, ok = speaks[npm]; !ok {
			return way{}, false, nil
		}
	}
	base := cmp.Or(r.expand(text(options, "baseURL")), r.expand(text(p, "api")), s.base)
	if base == "" || !entryName.MatchString(id) {
		return way{}, false, nil
	}
	if s.base == "" {
		s.base = base
	}
	if _, good := parseBase(base); !good {
		return way{}, false, thole.Errorf(thole.CodeInvalid, "invalid base URL of opencode's model provider %s", id)
	}
	key, origin := r.expand(text(options, "apiKey")), "opencode's settings, "+id
	if key == "" {
		if key, origin = keyOf(s); key == "" {
			for _, name := range list(p["env"]) {
				key, origin = cmp.Or(key, r.getenv(name)), "variable "+name
			}
		}
	}
	if key == "" {
		if text(options, "baseURL") == "" && text(p, "api") == "" {
			return way{}, false, nil // only settings of a service that the user has no key for
		}
		w = newWay(opencode, s, "opencode's settings, "+id+", no key", func(context.Context, http.Header, bool) error { return nil })
	} else {
		w = keyWay(opencode, s, origin, constant(key))
	}
	extra := http.Header{}
	headers(extra, object(options, "headers"), r.expand)
	w.upstreams[0].Sign = withHeaders(w.upstreams[0].Sign, extra)
	w.info.Settings = shown(p)
	if !known {
		w.upstreams[0].Name = id
	}
	return w, true, w.at(base)
}

// shown is what a session learns of a model provider: nothing that says where it is or
// with which key.
func shown(p map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"npm", "name", "models", "whitelist", "blacklist"} {
		if v := p[name]; v != nil {
			out[name] = v
		}
	}
	models := map[string]any{}
	for id, m := range object(p, "models") {
		model, ok := m.(map[string]any)
		if !ok {
			continue
		}
		model = maps.Clone(model)
		for _, name := range []string{"headers", "provider", "options"} {
			delete(model, name)
		}
		models[id] = model
	}
	if len(models) > 0 {
		out["models"] = models
	}
	return out
}

var reference = regexp.MustCompile(`\{(env|file):([^}]+)\}`)

// expand replaces the references of opencode's settings by what they refer to.
func (r *Routes) expand(s string) string {
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		if m[1] == "env" {
			return r.getenv(m[2])
		}
		path := m[2]
		if rest, home := strings.CutPrefix(path, "~/"); home {
			path = filepath.Join(r.cfg.Login.Home, rest)
		}
		data, err := readBounded(path, maxKey)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(data))
	})
}

func list(v any) (out []string) {
	all, _ := v.([]any)
	for _, one := range all {
		if s, ok := one.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
