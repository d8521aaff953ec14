package setup

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
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

const opencode = "opencode"

// chosen are the settings of a file that a session learns of. Others of it could run
// programs of this machine.
var chosen = []string{"model", "small_model", "disabled_providers", "enabled_providers"}

// opencode is what opencode would do as the user runs it: the model providers of its
// settings, those that its login or the environment has a key for, and opencode's own
// without one.
func (u User) opencode(ctx context.Context) (all []Way, own map[string]any, err error) {
	providers, own, err := u.opencodeSettings()
	if err != nil {
		return nil, nil, err
	}
	keys, err := u.Own.Entries(ctx, opencode, u.Own.Own(opencode))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	keyOf := func(s Service) (key, origin string) {
		if key = keys[s.Name]; key != "" && u.Shell[s.variable] == "" {
			return key, "your login of opencode, " + s.Name
		}
		return u.getenv(s.variable), u.variable(s.variable)
	}
	for _, id := range sortedKeys(providers) {
		if w, ok, err := u.opencodeProvider(id, object(providers, id), keyOf); err != nil {
			return nil, nil, err
		} else if ok {
			all = append(all, w)
		}
	}
	for _, s := range append(slices.Clone(services), zen) {
		if providers[s.Name] != nil {
			continue
		}
		if key, origin := keyOf(s); key != "" {
			w, err := Key(opencode, s, origin, Constant(key)).at(u.getenv(s.elsewhere))
			if err != nil {
				return nil, nil, err
			}
			all = append(all, w)
		} else if s == zen {
			w := Key(opencode, s, "no key: models that need none", Constant("public"))
			w.Info.Keyless = true
			all = append(all, w)
		}
	}
	off, _ := own["disabled_providers"].([]any)
	all = slices.DeleteFunc(all, func(w Way) bool { return slices.Contains(off, any(w.Info.Provider)) })
	return all, own, nil
}

// opencodeSettings are the model providers of opencode's settings and what else a
// session learns of them.
func (u User) opencodeSettings() (providers, own map[string]any, err error) {
	providers, own = map[string]any{}, map[string]any{}
	dir := filepath.Join(cmp.Or(u.owns("XDG_CONFIG_HOME"), filepath.Join(u.Own.Home, ".config")), opencode)
	home := filepath.Join(u.Own.Home, ".opencode")
	for _, path := range []string{filepath.Join(dir, "config.json"), filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"), u.owns("OPENCODE_CONFIG"), filepath.Join(home, "opencode.json"), filepath.Join(home, "opencode.jsonc")} {
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
	if content := u.owns("OPENCODE_CONFIG_CONTENT"); content != "" {
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
var speaks = map[string]Dialect{"@ai-sdk/anthropic": Anthropic, "@ai-sdk/openai": Responses, "@ai-sdk/openai-compatible": Chat}

// opencodeProvider is a model provider of the settings. One that only opencode itself
// can reach is left out.
func (u User) opencodeProvider(id string, p map[string]any, keyOf func(Service) (string, string)) (w Way, ok bool, err error) {
	s, known := serviceOf(id)
	if id == zen.Name {
		s, known = zen, true
	}
	options := object(p, "options")
	if !known {
		s = Service{Name: id, Dialect: Chat}
	}
	if npm := text(p, "npm"); npm != "" {
		if s.Dialect, ok = speaks[npm]; !ok {
			return Way{}, false, nil
		}
	}
	base := cmp.Or(u.expand(text(options, "baseURL")), u.expand(text(p, "api")), u.getenv(s.elsewhere), s.base)
	if base == "" || !idForm().MatchString(id) {
		return Way{}, false, nil
	}
	if s.base == "" {
		s.base = base
	}
	if _, good := ParseBase(base); !good {
		return Way{}, false, thole.Errorf(thole.CodeInvalid, "invalid base URL of opencode's model provider %s", id)
	}
	key, origin := u.expand(text(options, "apiKey")), "opencode's settings, "+id
	if key == "" {
		if key, origin = keyOf(s); key == "" {
			for _, name := range list(p["env"]) {
				key, origin = cmp.Or(key, u.getenv(name)), u.variable(name)
			}
		}
	}
	if key == "" {
		if text(options, "baseURL") == "" && text(p, "api") == "" {
			return Way{}, false, nil // only settings of a service that the user has no key for
		}
		w = newWay(opencode, s, "opencode's settings, "+id+", no key", func(context.Context, http.Header, bool) error { return nil })
	} else {
		w = Key(opencode, s, origin, Constant(key))
	}
	extra := http.Header{}
	headers(extra, object(options, "headers"), u.expand)
	w.Sign = withHeaders(w.Sign, extra)
	w.Info.Settings = shown(p)
	if w, err = w.at(base); !known {
		w.Name = id
	}
	return w, true, err
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

// idForm is what a name of a model provider may be as a part of a route.
var idForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })

var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(env|file):([^}]+)\}`) })

// expand replaces the references of opencode's settings by what they refer to.
func (u User) expand(s string) string {
	return reference().ReplaceAllStringFunc(s, func(ref string) string {
		m := reference().FindStringSubmatch(ref)
		if m[1] == "env" {
			return u.getenv(m[2])
		}
		path := m[2]
		if rest, home := strings.CutPrefix(path, "~/"); home {
			path = filepath.Join(u.Own.Home, rest)
		}
		data, err := Read(path, MaxKey)
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

// Unserved are the model providers that the user has a key for and that no service of the
// gateway's dialects serves, by the CLI's names of them.
func (u User) Unserved(ctx context.Context, cli string) (out []string) {
	if cli != opencode || slices.Contains(u.Own.HandIn, cli) {
		return nil
	}
	keys, _ := u.Own.Entries(ctx, cli, u.Own.Own(cli)) // what cannot be read fails elsewhere
	for _, name := range sortedKeys(keys) {
		if !Known(name) && name != zen.Name {
			out = append(out, name)
		}
	}
	if (u.getenv("GEMINI_API_KEY") != "" || u.getenv("GOOGLE_GENERATIVE_AI_API_KEY") != "") && !slices.Contains(out, "google") {
		out = append(out, "google")
	}
	return out
}
