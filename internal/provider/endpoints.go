package provider

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
)

// Models are where a session with this grant finds its models, HOST:PORT: the base
// URLs that are configured for it, and the services it has a key for; where there are
// neither, those that its CLI goes to by itself. An address that settings mention for
// anything else does not count, and neither does what an agent can write. A session
// that goes through the gateway has no model of its own.
func (g Grant) Models(providerName string) []string {
	if g.Gateway {
		return nil
	}
	row := table.Of(providerName)
	var out []string
	add := func(model string) {
		if model != "" && !slices.Contains(out, model) {
			out = append(out, model)
		}
	}
	for _, name := range row.BaseURLs.Env {
		add(hostPort(g.Env[name]))
	}
	for _, at := range row.BaseURLs.Settings {
		text := []byte(g.Env[at.Name])
		if body, ok := g.Config[at.Name]; ok {
			text = body
		}
		settings := decodeSettings(at.Name, text)
		for _, path := range at.Paths {
			for _, u := range textsAt(settings, settings, strings.Split(path, ".")) {
				add(hostPort(u))
			}
		}
	}
	login := decodeSettings(row.Login.File, g.Files[row.Login.File])
	for _, k := range row.Keyed {
		if _, in := login[k.Login]; in || g.Env[k.Variable] != "" {
			add(k.Model)
		}
	}
	if len(out) == 0 {
		return slices.Clone(row.Models)
	}
	return out
}

func decodeSettings(name string, text []byte) map[string]any {
	out := map[string]any{}
	if strings.HasSuffix(name, ".toml") {
		_ = toml.Unmarshal(text, &out) // a CLI that cannot read it has no model either
	} else {
		_ = strictjson.Unmarshal(text, &out)
	}
	return out
}

// textsAt finds texts at a path: * is every name, {NAME} the one that the top level's NAME says.
func textsAt(top map[string]any, at any, path []string) []string {
	if len(path) == 0 {
		if s, ok := at.(string); ok {
			return []string{s}
		}
		return nil
	}
	m, ok := at.(map[string]any)
	if !ok {
		return nil
	}
	step := path[0]
	if step == "*" {
		var out []string
		for _, v := range m {
			out = append(out, textsAt(top, v, path[1:])...)
		}
		return out
	}
	if name, ok := strings.CutPrefix(step, "{"); ok {
		step, _ = top[strings.TrimSuffix(name, "}")].(string)
	}
	return textsAt(top, m[step], path[1:])
}

// hostPort is the place of a base URL, "" for any other text.
func hostPort(base string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	port := map[string]string{"http": "80", "https": "443"}
	if err != nil || u.Hostname() == "" || port[u.Scheme] == "" {
		return ""
	}
	if u.Port() != "" {
		return net.JoinHostPort(u.Hostname(), u.Port())
	}
	return net.JoinHostPort(u.Hostname(), port[u.Scheme])
}
