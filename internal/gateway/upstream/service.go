package upstream

import (
	"net/url"
	"strings"

	"github.com/tholehq/thole/internal/gateway"
)

// service is a model service that a CLI knows by itself.
type service struct {
	name    string
	dialect gateway.Dialect
	base    string
	// variable holds its key in an environment.
	variable string
}

var (
	openAI    = service{"openai", gateway.Responses, "https://api.openai.com/v1", "OPENAI_API_KEY"}
	anthropic = service{"anthropic", gateway.Anthropic, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"}
	// chatGPT takes the access tokens of codex's logins.
	chatGPT = service{name: "chatgpt", dialect: gateway.Responses, base: "https://chatgpt.com/backend-api/codex"}
	// zen is opencode's own, which serves some models to everybody.
	zen = service{"opencode", gateway.Chat, "https://opencode.ai/zen/v1", "OPENCODE_API_KEY"}
)

// ofCLI is the service that the key of a CLI is for, if it has one.
var ofCLI = map[string]service{"codex": openAI, "claude": anthropic}

// services are those that opencode has by name and that speak one of the gateway's
// dialects. Its others need an entry of the configuration.
var services = []service{
	anthropic, openAI,
	{"deepseek", gateway.Chat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
	{"groq", gateway.Chat, "https://api.groq.com/openai/v1", "GROQ_API_KEY"},
	{"mistral", gateway.Chat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
	{"openrouter", gateway.Chat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
}

func serviceOf(name string) (service, bool) {
	for _, s := range services {
		if s.name == name {
			return s, true
		}
	}
	return service{}, false
}

// parseBase reads the base URL of a service.
func parseBase(text string) (*url.URL, bool) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, false
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, true
}

// mustBase is parseBase of a text that is written here.
func mustBase(text string) *url.URL {
	u, ok := parseBase(text)
	if !ok {
		panic("invalid base URL " + text)
	}
	return u
}
