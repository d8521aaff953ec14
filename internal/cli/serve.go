package cli

import (
	"github.com/spf13/cobra"

	"github.com/tholehq/thole/internal/system"
	"github.com/tholehq/thole/web"
)

// newServe runs what up runs, as a server: on the store of the configuration that is named,
// without a browser.
func newServe(env *Env) *cobra.Command {
	var listen string
	var demo bool
	cmd := &cobra.Command{
		Use: "serve", Args: cobra.NoArgs,
		Short: "Run a server on the store of a configuration, PostgreSQL or SQLite, until it is stopped",
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := map[string]string{}
			if listen != "" {
				flags["http.listen"] = listen
			}
			cfg, err := env.config(flags)
			if err != nil {
				return err
			}
			if err := refuseSecond(cmd.Context(), cfg.Home); err != nil {
				return err
			}
			return up(cmd.Context(), env, system.Options{Config: cfg, Role: "serve", Takeover: true, Demo: demo, Log: env.logger(cfg), UI: web.Dist()}, false)
		},
	}
	env.configFlag(cmd)
	cmd.Flags().BoolVar(&demo, "demo", false, "use the scripted model: no agent login, no network, no key")
	cmd.Flags().StringVar(&listen, "listen", "", "address of the web page (default http.listen, 127.0.0.1:7433)")
	return cmd
}

// configFlag lets a command take a configuration file in the place of the home's.
func (e *Env) configFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.Config, "config", "", "configuration `FILE` (default the one that the home was served with, else config.toml in the home)")
}
