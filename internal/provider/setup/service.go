package setup

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/provider/table"
)

// Dialect is the protocol of a model service.
type Dialect string

// The dialects, by the names that the gateway has for them.
const (
	Anthropic Dialect = "anthropic"
	Responses Dialect = "responses"
	Chat      Dialect = "chat"
)

// Service is a model service that a CLI knows by itself.
type Service struct {
	Name    string
	Dialect Dialect
	base    string
	// variable holds its key in an environment, and elsewhere where it is, if anything does.
	variable, elsewhere string
}

var (
	openAI    = Service{"openai", Responses, "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
	anthropic = Service{"anthropic", Anthropic, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}
	// chatGPT takes the access tokens of codex's logins.
	chatGPT = Service{Name: "chatgpt", Dialect: Responses, base: "https://chatgpt.com/backend-api/codex"}
	// zen is opencode's own, which serves some models to everybody.
	zen = Service{"opencode", Chat, "https://opencode.ai/zen/v1", "OPENCODE_API_KEY", ""}
)

// ofCLI is the service that the key of a CLI is for, if it has one.
var ofCLI = map[string]Service{"codex": openAI, "claude": anthropic}

// services are those that opencode has by name and that speak one of the gateway's
// dialects. Its others need an entry of the configuration.
var services = []Service{
	anthropic, openAI,
	{"deepseek", Chat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", ""},
	{"groq", Chat, "https://api.groq.com/openai/v1", "GROQ_API_KEY", ""},
	{"mistral", Chat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY", ""},
	{"openrouter", Chat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", ""},
}

// Services are those that a CLI with several model providers has by name, its own the
// last.
func Services() []Service { return append(slices.Clone(services), zen) }

// OfCLI is the service that the key of a CLI with one only is for.
func OfCLI(cli string) (Service, bool) {
	s, ok := ofCLI[cli]
	return s, ok
}

// OwnService is the service of a CLI with several model providers.
func OwnService(string) Service { return zen }

// Speaks is the dialect that a CLI speaks on a route.
func Speaks(cli, modelProvider string) Dialect {
	if s, ok := ofCLI[cli]; ok {
		return s.Dialect
	}
	if s, ok := serviceOf(modelProvider); ok {
		return s.Dialect
	}
	return Chat
}

// Known reports whether a CLI with several model providers has one by name.
func Known(modelProvider string) bool {
	_, ok := serviceOf(modelProvider)
	return ok
}

// Routes are those on which a service of a dialect stands for a CLI's own, none where the
// dialect is nobody's own.
func Routes(d Dialect) (out []string) {
	for _, row := range table.CLIs {
		if s, ok := ofCLI[row.Name]; ok && s.Dialect == d {
			out = append(out, row.Gateway.Route)
			for _, several := range table.CLIs {
				if several.Gateway.Settings != "" {
					out = append(out, RouteOf(several.Name, s.Name))
				}
			}
		}
	}
	return out
}

// SDK is how a CLI with several model providers speaks a dialect to one that it does not
// know.
func SDK(d Dialect) string { return sdks[d] }

var sdks = map[Dialect]string{Anthropic: "@ai-sdk/anthropic", Responses: "@ai-sdk/openai", Chat: "@ai-sdk/openai-compatible"}

func serviceOf(name string) (Service, bool) {
	for _, s := range services {
		if s.Name == name {
			return s, true
		}
	}
	return Service{}, false
}

// ParseBase reads the base URL of a service.
func ParseBase(text string) (*url.URL, bool) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, false
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, true
}

// mustBase is ParseBase of a text that is written here.
func mustBase(text string) *url.URL {
	u, ok := ParseBase(text)
	if !ok {
		panic("invalid base URL " + text)
	}
	return u
}
