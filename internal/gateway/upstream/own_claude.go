package upstream

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
)

// claudeModels are variables that say which models the CLI asks for: at a company's
// gateway they have other names.
var claudeModels = []string{"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"}

// ownClaude is what claude would do as the user runs it: variables, of its settings or
// the server's, before its login.
func (r *Routes) ownClaude(ctx context.Context) (way, error) {
	all, err := settings(filepath.Join(r.dir("claude"), "settings.json"))
	if err != nil {
		return way{}, err
	}
	get := func(name string) string {
		if v := text(object(all, "env"), name); v != "" {
			return v
		}
		return r.getenv(name)
	}
	for _, name := range []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"} {
		if v := strings.ToLower(get(name)); v != "" && !slices.Contains([]string{"0", "false", "no", "off"}, v) {
			return way{}, cannotPass("claude", name)
		}
	}
	base := strings.TrimSuffix(get("ANTHROPIC_BASE_URL"), "/")
	if base != "" {
		base += "/v1"
	}
	extra := customHeaders(get("ANTHROPIC_CUSTOM_HEADERS"))
	var w way
	key := func(name string, how header) way {
		return newWay("claude", anthropic, "variable "+name, signKey(how, "variable "+name, constant(get(name))))
	}
	switch {
	case get("ANTHROPIC_AUTH_TOKEN") != "":
		w = key("ANTHROPIC_AUTH_TOKEN", bearer)
	case get("ANTHROPIC_API_KEY") != "":
		w = key("ANTHROPIC_API_KEY", apiKey)
	case get("CLAUDE_CODE_OAUTH_TOKEN") != "":
		const name = "CLAUDE_CODE_OAUTH_TOKEN"
		plain := signKey(bearer, "variable "+name, constant(get(name)))
		w = newWay("claude", anthropic, "variable "+name, func(ctx context.Context, h http.Header, refused bool) error {
			if err := plain(ctx, h, refused); err != nil {
				return err
			}
			signOAuth(h, get(name))
			return nil
		})
		w.info.Token = name
	default:
		if w, err = r.ownLogin(ctx, "claude", ""); err != nil {
			return way{}, err
		}
		if len(w.upstreams) == 0 && text(all, "apiKeyHelper") != "" {
			return way{}, cannotPass("claude", "apiKeyHelper of its settings")
		}
		if len(w.upstreams) == 0 && base != "" && len(extra) > 0 {
			w = newWay("claude", anthropic, "ANTHROPIC_CUSTOM_HEADERS", func(context.Context, http.Header, bool) error { return nil })
		}
	}
	if len(w.upstreams) == 0 {
		return w, nil
	}
	w.upstreams[0].Sign = withHeaders(w.upstreams[0].Sign, extra)
	w.info.Env = map[string]string{}
	for _, name := range claudeModels {
		if v := get(name); v != "" {
			w.info.Env[name] = v
		}
	}
	return w, w.at(base)
}

// customHeaders reads the lines of ANTHROPIC_CUSTOM_HEADERS.
func customHeaders(lines string) http.Header {
	out := http.Header{}
	for _, line := range strings.Split(lines, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) != "" {
			out.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return out
}
