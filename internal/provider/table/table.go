// Package table is what is written down of each agent CLI: one row each, data
// only. Code that needs a difference between them reads a member of a row; nobody
// outside of internal/provider asks for a provider by its name.
package table

import thole "github.com/tholehq/thole"

// CLI is one row.
type CLI struct {
	Name string
	// Long is what some clients call it.
	Long string
	// Install is the command that brings it.
	Install string
	// Tools says that it takes the tool server of thole.
	Tools bool
	// Chat says that chat clients have routes that stand for it alone.
	Chat bool
	// Searches says that its model's service searches the web for it, unless a thread or a
	// gateway without such tools says otherwise.
	Searches bool
	// Modes are its own words for the neutral profiles, in the order of Profiles. In
	// every mode of plan the host denies what the CLI would let through.
	Modes [4]string
	// Native are further modes of its own that a user may choose, as its words for a profile.
	Native []Mode
	Login  Login
	// Project is the directory of its settings in a project, and Home that of its data
	// in the user's home; Data is where the latter leads below the agents' data.
	Project, Home, Data string
	// Configs are names below the user's home from which it, or agents like it, take
	// configuration, besides the directory of its login.
	Configs []string
	// Models are where it goes by itself, HOST:PORT, unless BaseURLs or Keyed say
	// otherwise: they pass every egress policy but none.
	Models   []string
	BaseURLs BaseURLs
	Keyed    []Keyed
	Gateway  Gateway
}

// Gateway is how a CLI is led to the gateway in the place of its own service.
type Gateway struct {
	// Route is the first element of the paths there. Where a CLI has several model
	// providers, each has a route of its own: Route and its name.
	Route string
	Path  string // below the route, as the CLI wants its base URL
	// URL and Token are variables that the driver or the CLI itself reads.
	URL, Token string
	// Model is the variable that names the default model, where the CLI has none itself.
	Model string
	// NoTools is the variable that keeps the CLI from offering tools of the model's
	// service, where it would in every call.
	NoTools string
	// Settings, in place of URL, is the variable that holds settings with all model
	// providers, which refer to Token.
	Settings string
}

// BaseURLs say where the places of models are configured.
type BaseURLs struct {
	Env      []string // variables that hold one
	Settings []Settings
}

// Settings are a file of settings, or a variable that holds them, and the paths at which
// they have base URLs: * is every name, {NAME} the one that the top level's NAME says.
type Settings struct {
	Name  string
	Paths []string
}

// Keyed is a model that a CLI goes to with a key, in a variable or under a name of its
// login.
type Keyed struct{ Variable, Login, Model string }

// Login says where a CLI keeps its login.
type Login struct {
	// File is its name, which the driver expects in SessionConfig.Auth too; it is in
	// the directory Dir below the home, unless a variable moves that.
	File, Dir, Variable string
	// Env are the variables it reads keys and endpoints from.
	Env []string
	// Hands are the members of the file that an executor gets, Inert those that the CLI
	// insists on and gets empty. Keys, in place of both, is the type of the entries
	// that are keys: of the others the CLI wants a refresh token.
	Hands, Inert []string
	Keys         string
	// Key is the member that holds an API key in place of a login, Mode the one that is
	// KeyMode then, Account the one that names the account of a login.
	Key, Mode, KeyMode, Account string
	// Facts are the members by which the CLI knows what the account may do.
	Facts   []string
	Renewal Renewal
	// Command are the CLI's own words for logging in.
	Command []string
}

// Renewal is how a CLI renews its login: one POST of JSON to URL, or where Variable
// says, for the client Client. The others are members of the login file.
type Renewal struct {
	URL, Variable, Client string
	Reason                string // why, where the service wants to know
	Access, Refresh, ID   string
	ClientID              string // the login's own client, if it has one
	Scopes                string // what the login may do, which is asked for again; "" says nothing of it
	Expires               string // when the access token ends, in milliseconds; "": the token itself says
	Stamp                 string // when it was renewed
	Lock                  bool   // the CLI takes locks while it renews, those of Claude Code
}

// Mode is a CLI's own mode that no neutral profile stands for.
type Mode struct {
	Mode  string `json:"mode" doc:"value of execution_profile"`
	Title string `json:"title"`
	// Asks says that a person is asked before something is changed.
	Asks bool `json:"asks" doc:"a person is asked before anything is changed"`
}

// Profiles are the neutral profiles in the order of CLI.Modes.
var Profiles = [4]thole.Profile{thole.ProfilePlan, thole.ProfileAsk, thole.ProfileEdit, thole.ProfileFull}

// Contract is the CLI whose own protocol the thread contract is: its models keep
// their names there, its modes are the contract's words, and its terminal is a
// client. It is also what runs where nobody chose.
const Contract = "codex"

// CLIs are all rows.
var CLIs = []CLI{
	{
		Name: Contract, Long: "codex-cli", Tools: true, Searches: true, Install: "npm install -g @openai/codex",
		Modes: [4]string{"never/read-only", "untrusted/workspace-write", "on-request/workspace-write", "never/danger-full-access"}, // approval policy "/" sandbox
		Native: []Mode{
			{"on-request/read-only", "Read only, asks before each change", true},
			{"never/workspace-write", "Change the workspace, never ask", false},
		},
		Login: Login{File: "auth.json", Dir: ".codex", Variable: "CODEX_HOME", Command: []string{"login"}, Env: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"},
			// Without last_refresh codex does not use the login.
			Hands: []string{"auth_mode", "last_refresh", "OPENAI_API_KEY", "personal_access_token", "bedrock_api_key", "bedrock_access_keys", "tokens.id_token", "tokens.access_token", "tokens.account_id"}, Inert: []string{"tokens.refresh_token"},
			Key: "OPENAI_API_KEY", Mode: "auth_mode", KeyMode: "apikey", Account: "tokens.account_id",
			Renewal: Renewal{URL: "https://auth.openai.com/oauth/token", Variable: "CODEX_REFRESH_TOKEN_URL_OVERRIDE", Client: "app_EMoamEEZ73f0CkXaXp7hrann", Reason: "proactive_expiry",
				Access: "tokens.access_token", Refresh: "tokens.refresh_token", ID: "tokens.id_token", Stamp: "last_refresh"}},
		Project: ".codex", Home: ".codex", Data: "codex", Configs: []string{".agents"},
		Models: []string{"api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443"},
		BaseURLs: BaseURLs{Env: []string{"OPENAI_BASE_URL"},
			Settings: []Settings{{"config.toml", []string{"model_providers.{model_provider}.base_url", "openai_base_url", "chatgpt_base_url"}}}},
		Gateway: Gateway{Route: "codex", Path: "/v1", URL: "THOLE_GATEWAY_URL", Token: "THOLE_GATEWAY_TOKEN", Model: "THOLE_GATEWAY_MODEL", NoTools: "THOLE_GATEWAY_NO_TOOLS"},
	},
	{
		Name: "claude", Long: "claude-code", Tools: true, Searches: true, Install: "npm install -g @anthropic-ai/claude-code",
		Modes:  [4]string{"plan", "default", "acceptEdits", "bypassPermissions"}, // permission mode
		Native: []Mode{{"dontAsk", "Refuse what would have to be asked", false}},
		Login: Login{File: ".credentials.json", Dir: ".claude", Variable: "CLAUDE_CONFIG_DIR", Command: []string{"auth", "login"},
			Env:   []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"},
			Hands: []string{"claudeAiOauth.accessToken", "claudeAiOauth.expiresAt", "claudeAiOauth.scopes", "claudeAiOauth.subscriptionType", "claudeAiOauth.rateLimitTier"},
			Facts: []string{"claudeAiOauth.scopes", "claudeAiOauth.subscriptionType", "claudeAiOauth.rateLimitTier"},
			Renewal: Renewal{URL: "https://platform.claude.com/v1/oauth/token", Client: "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
				Access: "claudeAiOauth.accessToken", Refresh: "claudeAiOauth.refreshToken", Expires: "claudeAiOauth.expiresAt", ClientID: "claudeAiOauth.clientId", Scopes: "claudeAiOauth.scopes", Lock: true}},
		Project: ".claude", Home: ".claude", Data: "claude/claude", Configs: []string{".claude.json"},
		Models: []string{"api.anthropic.com:443", "console.anthropic.com:443", "platform.claude.com:443"},
		BaseURLs: BaseURLs{Env: []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL"},
			Settings: []Settings{{"settings.json", []string{"env.ANTHROPIC_BASE_URL", "env.ANTHROPIC_BEDROCK_BASE_URL", "env.ANTHROPIC_VERTEX_BASE_URL"}}}},
		Gateway: Gateway{Route: "claude", URL: "ANTHROPIC_BASE_URL", Token: "ANTHROPIC_AUTH_TOKEN"},
	},
	{
		// Nothing links ~/.opencode: it holds no conversation, and opencode installs
		// packages into it.
		Name: "opencode", Install: "npm install -g opencode-ai", Tools: true, Chat: true,
		Modes: [4]string{"plan", "build/ask", "build/edit", "build/allow"}, // agent, with the permission rule that goes with it
		Native: []Mode{
			{"general/ask", "General agent, asks before each change", true},
			{"general/edit", "General agent, edits without asking", false},
			{"explore/ask", "Explore agent: finds and reads, changes nothing unasked", true},
		},
		Login: Login{File: "auth.json", Dir: ".local/share/opencode", Command: []string{"auth", "login"},
			Env:  []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY", "OPENCODE_CONFIG_CONTENT"},
			Keys: "api"},
		Project: ".opencode", Home: ".local/share/opencode", Data: "opencode/opencode/data/opencode", Configs: []string{".config/opencode", ".opencode"},
		Models:   []string{"opencode.ai:443"},
		BaseURLs: BaseURLs{Settings: []Settings{{"OPENCODE_CONFIG_CONTENT", opencodeURLs}, {"opencode.json", opencodeURLs}}},
		Keyed: []Keyed{
			{"OPENAI_API_KEY", "openai", "api.openai.com:443"}, {"ANTHROPIC_API_KEY", "anthropic", "api.anthropic.com:443"}, {"OPENROUTER_API_KEY", "openrouter", "openrouter.ai:443"},
			{"GEMINI_API_KEY", "google", "generativelanguage.googleapis.com:443"}, {"GROQ_API_KEY", "groq", "api.groq.com:443"}, {"OPENCODE_API_KEY", "opencode", "opencode.ai:443"},
		},
		Gateway: Gateway{Route: "oc-", Path: "/v1", Token: "THOLE_GATEWAY_TOKEN", Settings: "OPENCODE_CONFIG_CONTENT"},
	},
	{Name: "test", Modes: [4]string{"plan", "ask", "edit", "full"}, BaseURLs: BaseURLs{Env: []string{"OPENAI_BASE_URL"}}},
}

var opencodeURLs = []string{"provider.*.options.baseURL", "provider.*.api"}

// Of is the row of a name, the zero one where there is none.
func Of(name string) CLI {
	for _, c := range CLIs {
		if c.Name == name {
			return c
		}
	}
	return CLI{}
}

// Named is the name of a CLI that may be called by its long one.
func Named(name string) string {
	for _, c := range CLIs {
		if c.Long != "" && c.Long == name {
			return c.Name
		}
	}
	return name
}
