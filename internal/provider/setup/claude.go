package setup

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

// claude is what claude would do as the user runs it: variables, of its settings or
// the server's, before its login.
func (u User) claude(ctx context.Context) (Way, error) {
	all, err := settings(filepath.Join(u.dir("claude"), "settings.json"))
	if err != nil {
		return Way{}, err
	}
	get := func(name string) string {
		if v := text(object(all, "env"), name); v != "" {
			return v
		}
		return u.getenv(name)
	}
	for _, name := range []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"} {
		if v := strings.ToLower(get(name)); v != "" && !slices.Contains([]string{"0", "false", "no", "off"}, v) {
			return Way{}, cannotPass("claude", name)
		}
	}
	base := strings.TrimSuffix(get("ANTHROPIC_BASE_URL"), "/")
	if base != "" {
		base += "/v1"
	}
	extra := customHeaders(get("ANTHROPIC_CUSTOM_HEADERS"))
	var w Way
	origin := func(name string) string {
		if text(object(all, "env"), name) != "" {
			return "variable " + name + " of claude's settings"
		}
		return u.variable(name)
	}
	key := func(name string, how Header) Way {
		return newWay("claude", anthropic, origin(name), SignKey(how, origin(name), Constant(get(name))))
	}
	switch {
	case get("ANTHROPIC_AUTH_TOKEN") != "":
		w = key("ANTHROPIC_AUTH_TOKEN", Bearer)
	case get("ANTHROPIC_API_KEY") != "":
		w = key("ANTHROPIC_API_KEY", APIKey)
	case get("CLAUDE_CODE_OAUTH_TOKEN") != "":
		const name = "CLAUDE_CODE_OAUTH_TOKEN"
		plain := SignKey(Bearer, origin(name), Constant(get(name)))
		w = newWay("claude", anthropic, origin(name), func(ctx context.Context, h http.Header, refused bool) error {
			if err := plain(ctx, h, refused); err != nil {
				return err
			}
			signOAuth(h, get(name))
			return nil
		})
		w.Info.Token = name
	default:
		if w, err = u.login(ctx, "claude", ""); err != nil {
			return Way{}, err
		}
		if w.none() && text(all, "apiKeyHelper") != "" {
			return Way{}, cannotPass("claude", "apiKeyHelper of its settings")
		}
		if w.none() && base != "" && len(extra) > 0 {
			w = newWay("claude", anthropic, "ANTHROPIC_CUSTOM_HEADERS", func(context.Context, http.Header, bool) error { return nil })
		}
	}
	if w.none() {
		return w, nil
	}
	w.Sign = withHeaders(w.Sign, extra)
	w.Info.Env = map[string]string{}
	for _, name := range claudeModels {
		if v := get(name); v != "" {
			w.Info.Env[name] = v
		}
	}
	return w.at(base)
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
