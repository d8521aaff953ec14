package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/acp"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/setup"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

func newACP(env *Env) *cobra.Command {
	var cfg acp.Config
	var providerName string
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Serve threads to editors that speak the Agent Client Protocol",
		Long: "Speaks the Agent Client Protocol on standard input and output, for Zed and other editors. Each session of the editor is\n" +
			"a thread whose agent works in the editor's directory; terminals, pages and other editors may be on it at the same time.\n" +
			"The process that owns the home does the work and is started if there is none. Turns go on when the editor leaves.",
		Example: "  thole acp --profile ask",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := firstModel(&cfg.Model, providerName); err != nil {
				return err
			}
			if _, ok := profileWords(cfg.Profile); !ok {
				return errProfile(cfg.Profile)
			}
			away, err := env.server()
			if err != nil {
				return err
			}
			cfg.Away = away != nil
			cfg.Dial = env.contract
			cfg.Keys = env.handKeys
			cfg.Logins = env.missingLogins
			return acp.Serve(cmd.Context(), env.stdio(), cfg)
		},
	}
	f := cmd.Flags()
	f.Var((*modelName)(&cfg.Model), "model", "agent or model of new sessions: AGENT, AGENT/MODEL, or a bare model of Codex")
	f.StringVar(&providerName, "provider", "", "agent of new sessions, with its default model: "+strings.Join(providerNames(), ", "))
	f.StringVar(&cfg.Profile, "profile", "", "mode of new sessions: plan, ask, edit or full")
	f.BoolVar(&cfg.WithoutMCP, "without-mcp", false, "open sessions without the MCP servers that the editor names, instead of starting them")
	cmd.MarkFlagsMutuallyExclusive("model", "provider")
	return cmd
}

func providerNames() (out []string) {
	for _, row := range table.CLIs {
		out = append(out, row.Name)
	}
	return out
}

// firstModel is the model that a provider's name stands for.
func firstModel(model *string, providerName string) error {
	if providerName == "" {
		return nil
	}
	for _, known := range providerNames() {
		if known == providerName {
			*model = providerName + "/default"
			return nil
		}
	}
	return thole.Errorf(thole.CodeInvalid, "unknown provider %q", providerName).WithHint("use %s", strings.Join(providerNames(), ", "))
}

// missingLogins are agents that are installed and have no credential: neither does the
// owner know one, nor has this process one in its environment.
func (e *Env) missingLogins(ctx context.Context) ([]acp.Login, error) {
	if s, err := e.server(); err != nil || s != nil {
		return nil, err
	}
	var names []string
	if err := e.ask(ctx, daemon.MethodMissing, struct{}{}, &names); err != nil || len(names) == 0 {
		return nil, err
	}
	c, err := e.contract(ctx, appclient.Options{})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var there app.ProviderListResult
	if err := c.Call(ctx, "thole/provider/list", nil, &there); err != nil {
		return nil, fromContract(err)
	}
	home, _ := os.UserHomeDir() // without one there are no settings that name variables either
	var out []acp.Login
	for _, raw := range there.Data {
		var info provider.Info
		if strictjson.Unmarshal(raw, &info) != nil || !info.Available || !slices.Contains(names, info.Name) ||
			len(setup.Variables(ctx, provider.Login{Home: home, Getenv: os.Getenv}, info.Name)) > 0 {
			continue
		}
		out = append(out, acp.Login{Provider: info.Name, Title: info.Title, Args: []string{"provider", "login", info.Name}})
	}
	return out, nil
}
