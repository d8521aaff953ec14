package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/gateway/upstream"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/system"
)

func newProvider(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Show the agent CLIs of this machine, try one and log in to one",
	}
	cmd.AddCommand(
		newProviderList(env),
		&cobra.Command{
			Use:   "probe [NAME]",
			Short: "Inspect the installed CLIs: version, profiles, capabilities and what happens without them",
			Args:  cobra.MaximumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				name := strings.Join(args, "")
				infos, err := env.probe(cmd.Context(), name)
				if err != nil {
					return err
				}
				err = env.print(infos, func(w io.Writer) {
					for _, info := range infos {
						printProvider(w, info)
					}
				})
				if info := infos[0]; err == nil && name != "" && !info.Available {
					return thole.Errorf(thole.CodeUnavailable, "%s: %s", name, info.Problem).WithHint("%s", info.Fix)
				}
				return err
			},
		},
		newProviderConfig(env),
		newProviderTry(env),
		newProviderLogin(env),
	)
	return cmd
}

func newProviderList(env *Env) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the providers and what each can do here", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			infos, err := env.probe(cmd.Context(), "")
			if err != nil {
				return err
			}
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			var tried daemon.Checks
			if check {
				if tried, err = env.checks(cmd.Context()); err != nil {
					return err
				}
			}
			all := credited(infos, doctor.Credentials(cmd.Context(), cfg, ownLogins(cfg), env.kept(cmd.Context())), tried)
			if err := env.print(all, func(w io.Writer) { printProviders(w, infos); printCredentials(w, all) }); err != nil {
				return err
			}
			return neededMissing([]doctor.Finding{usable(all)})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "ask each model service whether it takes the credential, by one call that costs nothing")
	return cmd
}

// ownLogins are those of the user of this terminal.
func ownLogins(cfg *config.Config) provider.Login {
	home, _ := os.UserHomeDir()
	return provider.Login{Home: home, Getenv: os.Getenv, HandIn: cfg.Providers.HandInLogins}
}

// creditedInfo is a provider with what its turns run on, without any value.
type creditedInfo struct {
	provider.Info
	Credential        string `json:"credential,omitempty"`
	CredentialProblem string `json:"credential_problem,omitempty"`
	CredentialFix     string `json:"credential_fix,omitempty"`
	// Checked is what the services said, if they were asked.
	Checked []upstream.Checked `json:"checked,omitempty"`
}

// usable says whether one of them can run a turn.
func usable(all []creditedInfo) doctor.Finding {
	var agents, credentials []doctor.Finding
	for _, i := range all {
		if i.Credential == "" && i.CredentialProblem == "" { // the scripted agent
			continue
		}
		agents = append(agents, doctor.Finding{Part: "agent " + i.Name, OK: i.Available, Fix: i.Fix})
		credentials = append(credentials, doctor.Finding{Part: "credential " + i.Name, OK: i.Credential != ""})
	}
	return doctor.Usable(agents, credentials)
}

func credited(infos []provider.Info, all map[string]doctor.Credential, tried daemon.Checks) (out []creditedInfo) {
	for _, i := range infos {
		one := creditedInfo{Info: i, Credential: all[i.Name].Found, Checked: tried[i.Name].Sources}
		if err := all[i.Name].Err; err != nil {
			one.CredentialProblem, one.CredentialFix = err.Error(), thole.HintOf(err)
		}
		out = append(out, one)
	}
	return out
}

func printCredentials(w io.Writer, all []creditedInfo) {
	putln(w)
	for _, i := range all {
		switch {
		case i.Credential != "":
			putf(w, "%s runs on %s\n", i.Name, i.Credential)
		case i.CredentialProblem != "":
			putf(w, "%s: %s\n  try: %s\n", i.Name, i.CredentialProblem, i.CredentialFix)
		}
		for _, c := range i.Checked {
			putf(w, "  %s takes the credential from %s: %s %s\n", cmp.Or(c.Host, c.Upstream), c.Origin, c.Taken, oneLine(c.Note, 160))
		}
	}
}

// providers are those of the configuration; the CLIs run on this machine, not in
// the home's owner, so that what is shown is what this user has.
func (e *Env) providers() ([]provider.Provider, error) {
	cfg, err := e.providersConfig()
	if err != nil {
		return nil, err
	}
	return system.Providers(cfg), nil
}

func (e *Env) providersConfig() (none config.Providers, err error) {
	home, err := e.home()
	if err != nil {
		return none, err
	}
	cfg, err := config.Load(home, os.Getenv, nil)
	if err != nil {
		return none, err
	}
	return cfg.Providers, nil
}

// provider finds one by name.
func (e *Env) provider(name string) (provider.Provider, error) {
	all, err := e.providers()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range all {
		if p.Name() == name {
			return p, nil
		}
		names = append(names, p.Name())
	}
	return nil, thole.Errorf(thole.CodeNotFound, "no provider %q", name).WithHint("there are %s", strings.Join(names, ", "))
}

// probe inspects one provider, or all at the same time.
func (e *Env) probe(ctx context.Context, name string) ([]provider.Info, error) {
	all, err := e.providers()
	if name != "" && err == nil {
		var p provider.Provider
		p, err = e.provider(name)
		all = []provider.Provider{p}
	}
	if err != nil {
		return nil, err
	}
	infos := make([]provider.Info, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { infos[i] = p.Probe(ctx) })
	}
	wg.Wait()
	return infos, ctx.Err()
}

// capability is one row of the matrix.
type capability struct {
	field, title string
	value        provider.Capability
}

func matrix(c provider.Capabilities) []capability {
	return []capability{
		{"resume", "resume", c.Resume}, {"fork", "fork", c.Fork}, {"steer", "steer", c.Steer},
		{"human_loop", "questions", c.HumanLoop}, {"ask_survives_restart", "questions survive restart", c.AskSurvives},
		{"tool_approval", "approvals", c.ToolApproval}, {"todo_stream", "todos", c.TodoStream}, {"plan_mode", "plan mode", c.PlanMode},
		{"usage", "usage", c.Usage}, {"cost", "cost", c.Cost}, {"tool_input_stream", "streamed tool input", c.ToolInputFlow},
	}
}

func mark(c provider.Capability) string {
	switch c {
	case provider.Validated:
		return "yes"
	case provider.Unavailable:
		return "no"
	}
	return "?"
}

func printProviders(w io.Writer, infos []provider.Info) {
	tw := newTable(w)
	put(tw, "CAPABILITY")
	for _, i := range infos {
		putf(tw, "\t%s", i.Name)
	}
	row := func(title string, cell func(provider.Info) string) {
		putf(tw, "\n%s", title)
		for _, i := range infos {
			putf(tw, "\t%s", cell(i))
		}
	}
	row("installed", func(i provider.Info) string {
		if !i.Available {
			return "no"
		}
		return i.Version
	})
	for n, c := range matrix(infos[0].Capabilities) {
		row(c.title, func(i provider.Info) string { return mark(matrix(i.Capabilities)[n].value) })
	}
	putln(tw)
	tw.Flush()
	for _, i := range infos {
		if i.Problem != "" {
			putf(w, "\n%s: %s\n", i.Name, i.Problem)
			if i.Fix != "" {
				putf(w, "  try: %s\n", i.Fix)
			}
		}
	}
}

func printProvider(w io.Writer, i provider.Info) {
	putf(w, "%s (%s)\n", i.Name, i.Title)
	tw := newTable(w)
	line := func(k, v string) {
		if v != "" {
			putf(tw, "  %s\t%s\n", k, v)
		}
	}
	line("binary", i.Binary)
	line("version", i.Version)
	line("tested", i.Pinned)
	line("problem", i.Problem)
	line("fix", i.Fix)
	for _, p := range i.Profiles {
		line("profile "+string(p.Profile), p.Native)
	}
	for _, c := range matrix(i.Capabilities) {
		text := mark(c.value)
		if note := i.Capabilities.Notes[c.field]; note != "" {
			text += ": " + note
		}
		line(c.title, text)
	}
	var models []string
	for _, m := range i.Models {
		models = append(models, m.ID)
	}
	slices.Sort(models)
	line("models", strings.Join(models, ", "))
	tw.Flush()
	putln(w)
}
