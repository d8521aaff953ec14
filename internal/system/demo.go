package system

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/claude"
	"github.com/tholehq/thole/internal/provider/codex"
	"github.com/tholehq/thole/internal/provider/opencode"
)

// demo is the scripted model in place of a real one.
type demo struct {
	sim  *modelsim.Sim
	url  string
	done chan struct{}
}

func startDemo(sample bool) (*demo, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "start the scripted model: %w", err)
	}
	d := &demo{sim: modelsim.New(modelsim.Options{Demo: true, Sample: sample, Pace: 15 * time.Millisecond}), url: "http://" + ln.Addr().String(), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		_ = d.sim.Serve(ln)
	}()
	return d, nil
}

func (d *demo) stop() error {
	err := d.sim.Close()
	<-d.done
	return err
}

// demoRoutes have one upstream, the scripted model.
type demoRoutes struct{ model gateway.Upstream }

func newDemoRoutes(model string) (demoRoutes, error) {
	u, err := url.Parse(model + "/v1")
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return demoRoutes{}, thole.Errorf(thole.CodeInvalid, "invalid URL of a scripted model %q", model).
			WithHint("start one with thole demo-model and pass the URL that it prints")
	}
	sign := func(context.Context, http.Header, bool) error { return nil } // it wants no key
	return demoRoutes{gateway.Upstream{Name: "demo", Base: u, Sign: sign}}, nil
}

// Route implements gateway.Routes.
func (d demoRoutes) Route(_ context.Context, _ gateway.Claim, route string) (gateway.Route, error) {
	dialects := map[string]gateway.Dialect{codex.Name: gateway.Responses, claude.Name: gateway.Anthropic, "oc-sim": gateway.Chat}
	dialect, ok := dialects[route]
	if !ok {
		return gateway.Route{}, thole.Errorf(thole.CodeNotFound, "the scripted model has no route %q", route)
	}
	return gateway.Route{Dialect: dialect, Upstreams: []gateway.Upstream{d.model}, Grants: gateway.Grants{Tools: true}}, nil // it runs none
}

func demoGrant(_ context.Context, who provider.For, token string) (provider.Grant, error) {
	return DemoGrant(who.Provider, token)
}

// DemoGrant lets a CLI run on the scripted model through the gateway, without network
// or key.
func DemoGrant(name, token string) (provider.Grant, error) {
	at := func(route string) string { return "http://" + provider.GatewayPlace + "/" + route }
	switch name {
	case codex.Name:
		return codexDemo(at(codex.Name), token)
	case claude.Name:
		env := environ(modelsim.ClaudeEnv(at(claude.Name)))
		delete(env, "ANTHROPIC_API_KEY")
		env["ANTHROPIC_AUTH_TOKEN"] = token
		return provider.Grant{Gateway: true, Env: env}, nil
	case opencode.Name:
		env := environ(modelsim.OpencodeEnv(at("oc-sim")))
		env["OPENCODE_CONFIG_CONTENT"] = strings.Replace(env["OPENCODE_CONFIG_CONTENT"], `"apiKey":"sim"`, `"apiKey":"`+token+`"`, 1)
		return provider.Grant{Gateway: true, Env: env}, nil
	}
	return provider.Grant{}, nil
}

// gatewayToken is the variable in which codex finds its token.
const gatewayToken = "THOLE_GATEWAY_TOKEN"

// codexDemo makes codex's settings as files. The model catalog is named by an
// absolute path, which is only known inside the executor: there the agents' data
// is always at the same place below the workspace, and codex resolves a relative
// name against its home.
func codexDemo(url, token string) (provider.Grant, error) {
	dir, err := os.MkdirTemp("", "thole-demo")
	if err != nil {
		return provider.Grant{}, thole.Errorf(thole.CodeUnavailable, "prepare an agent for the scripted model: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := modelsim.CodexConfig(dir, url); err != nil {
		return provider.Grant{}, err
	}
	g := provider.Grant{Gateway: true, Env: map[string]string{gatewayToken: token}, Config: map[string][]byte{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return provider.Grant{}, err
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return provider.Grant{}, err
		}
		name := e.Name()
		if name != "config.toml" {
			name = codex.Laid + "/" + name
		}
		text := strings.ReplaceAll(string(body), dir+"/", codex.Laid+"/")
		g.Config[name] = []byte(strings.Replace(text, "wire_api =", "env_key = \""+gatewayToken+"\"\nwire_api =", 1))
	}
	return g, nil
}

func environ(list []string) map[string]string {
	env := map[string]string{}
	for _, v := range list {
		key, value, _ := strings.Cut(v, "=")
		env[key] = value
	}
	return env
}

// demoModel is the address of the scripted model: one that runs elsewhere, or our own.
func (s *System) demoModel(o Options) (string, error) {
	if o.DemoModel != "" {
		return strings.TrimSuffix(o.DemoModel, "/"), nil
	}
	d, err := startDemo(o.Sample != "")
	if err != nil {
		return "", err
	}
	s.closes(d.stop)
	return d.url, nil
}
