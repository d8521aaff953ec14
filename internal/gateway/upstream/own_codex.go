package upstream

import (
	"cmp"
	"context"
	"net/http"
	"path/filepath"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider/table"
)

// ownCodex is what codex would do as the user runs it: the model provider of its
// settings, else its login. OPENAI_API_KEY comes last, unless a base URL is set with it:
// codex takes it from no environment, and a key that lies there for other programs must
// not be charged in place of the login.
func (r *Routes) ownCodex(ctx context.Context) (way, error) {
	all, err := settings(filepath.Join(r.dir("codex"), "config.toml"))
	if err != nil {
		return way{}, err
	}
	profile := object(object(all, "profiles"), text(all, "profile"))
	id := cmp.Or(text(profile, "model_provider"), text(all, "model_provider"), "openai")
	var w way
	if id == "openai" {
		w, err = r.ownOpenAI(ctx, text(all, "openai_base_url"))
	} else {
		w, err = r.codexProvider(ctx, id, object(object(all, "model_providers"), id))
	}
	if model := cmp.Or(text(profile, "model"), text(all, "model")); model != "" {
		w.info.Env = map[string]string{table.Of("codex").Gateway.Model: model}
	}
	return w, err
}

func (r *Routes) ownOpenAI(ctx context.Context, base string) (way, error) {
	variable := func(name, base string) (way, error) {
		w := keyWay("codex", openAI, "variable "+name, constant(r.getenv(name)))
		return w, w.at(base)
	}
	elsewhere := r.getenv("OPENAI_BASE_URL")
	switch {
	case r.getenv("CODEX_API_KEY") != "":
		return variable("CODEX_API_KEY", cmp.Or(base, elsewhere))
	case elsewhere != "" && r.getenv(openAI.variable) != "":
		return variable(openAI.variable, elsewhere)
	}
	w, err := r.ownLogin(ctx, "codex", base)
	if err == nil && len(w.upstreams) == 0 && r.getenv(openAI.variable) != "" {
		return variable(openAI.variable, base)
	}
	return w, err
}

// local are the model providers of this machine that codex knows by name.
var local = map[string]string{"ollama": "http://localhost:11434/v1", "lmstudio": "http://localhost:1234/v1"}

// codexProvider is a model provider of codex's settings.
func (r *Routes) codexProvider(ctx context.Context, id string, p map[string]any) (way, error) {
	base := cmp.Or(text(p, "base_url"), local[id])
	where := "model provider " + id + " of codex's settings"
	if base == "" || p["auth"] != nil || p["aws"] != nil {
		return way{}, cannotPass("codex", where)
	}
	s := service{name: id, dialect: gateway.Responses, base: openAI.base}
	var w way
	var err error
	switch name := text(p, "env_key"); {
	case name != "":
		if r.getenv(name) == "" {
			return way{}, thole.Errorf(thole.CodeNotFound, "%s wants its key in %s, which the server has not", where, name).WithHint("start the server with %s set", name)
		}
		w = keyWay("codex", s, where+", variable "+name, constant(r.getenv(name)))
	case text(p, "experimental_bearer_token") != "":
		w = keyWay("codex", s, where, constant(text(p, "experimental_bearer_token")))
	case p["requires_openai_auth"] == true:
		w, err = r.ownLogin(ctx, "codex", "")
	default:
		w = newWay("codex", s, where, func(context.Context, http.Header, bool) error { return nil })
	}
	if err != nil || len(w.upstreams) == 0 {
		return w, err
	}
	if err := w.at(base); err != nil {
		return way{}, err
	}
	extra := http.Header{}
	headers(extra, object(p, "http_headers"), same)
	headers(extra, object(p, "env_http_headers"), r.getenv)
	query(w.upstreams[0].Base, object(p, "query_params"))
	w.upstreams[0].Name, w.upstreams[0].Sign = id, withHeaders(w.upstreams[0].Sign, extra)
	return w, nil
}
