package setup

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// codex is what codex would do as the user runs it: the model provider of its
// settings, else its login. OPENAI_API_KEY comes last, unless a base URL is set with it:
// codex takes it from no environment, and a key that lies there for other programs must
// not be charged in place of the login.
func (u User) codex(ctx context.Context) (Way, error) {
	all, err := settings(filepath.Join(u.dir("codex"), "config.toml"))
	if err != nil {
		return Way{}, err
	}
	profile := object(object(all, "profiles"), text(all, "profile"))
	id := cmp.Or(text(profile, "model_provider"), text(all, "model_provider"), "openai")
	var w Way
	if id == "openai" {
		w, err = u.openAI(ctx, text(all, "openai_base_url"))
	} else {
		w, err = u.codexProvider(ctx, id, object(object(all, "model_providers"), id))
	}
	if model := cmp.Or(text(profile, "model"), text(all, "model")); model != "" {
		w.Info.Env = map[string]string{table.Of("codex").Gateway.Model: model}
	}
	return w, err
}

func (u User) openAI(ctx context.Context, base string) (Way, error) {
	variable := func(name, base string) (Way, error) {
		w := Key("codex", openAI, u.variable(name), Constant(u.getenv(name)))
		return w.at(base)
	}
	elsewhere := u.getenv("OPENAI_BASE_URL")
	switch {
	case u.getenv("CODEX_API_KEY") != "":
		return variable("CODEX_API_KEY", cmp.Or(base, elsewhere))
	case elsewhere != "" && u.getenv(openAI.variable) != "":
		return variable(openAI.variable, elsewhere)
	}
	w, err := u.login(ctx, "codex", base)
	if err == nil && w.none() && u.getenv(openAI.variable) != "" {
		return variable(openAI.variable, base)
	}
	return w, err
}

// local are the model providers of this machine that codex knows by name.
var local = map[string]string{"ollama": "http://localhost:11434/v1", "lmstudio": "http://localhost:1234/v1"}

// codexProvider is a model provider of codex's settings.
func (u User) codexProvider(ctx context.Context, id string, p map[string]any) (Way, error) {
	base := cmp.Or(text(p, "base_url"), local[id])
	where := "model provider " + id + " of codex's settings"
	if base == "" || p["auth"] != nil || p["aws"] != nil {
		return Way{}, cannotPass("codex", where)
	}
	s := Service{Name: id, Dialect: Responses, base: openAI.base}
	var w Way
	var err error
	switch name := text(p, "env_key"); {
	case name != "":
		if u.getenv(name) == "" {
			return Way{}, thole.Errorf(thole.CodeNotFound, "%s wants its key in %s, which the server has not", where, name).WithHint("start the server with %s set", name)
		}
		w = Key("codex", s, where+", "+u.variable(name), Constant(u.getenv(name)))
	case text(p, "experimental_bearer_token") != "":
		w = Key("codex", s, where, Constant(text(p, "experimental_bearer_token")))
	case p["requires_openai_auth"] == true:
		w, err = u.login(ctx, "codex", "")
	default:
		w = newWay("codex", s, where, func(context.Context, http.Header, bool) error { return nil })
	}
	if err != nil || w.none() {
		return w, err
	}
	if w, err = w.at(base); err != nil {
		return Way{}, err
	}
	extra := http.Header{}
	headers(extra, object(p, "http_headers"), same)
	headers(extra, object(p, "env_http_headers"), u.getenv)
	query(w.Base, object(p, "query_params"))
	w.Name, w.Sign = id, withHeaders(w.Sign, extra)
	return w, nil
}
