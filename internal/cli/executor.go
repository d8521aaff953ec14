package cli

import (
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/system"
)

func newExecutor(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "executor", Short: "Run the service inside an executor"}
	cfg := system.ExecutordConfig{}
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Serve turns, files and terminals of one executor to the dispatcher",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Providers = config.Providers{
				Codex:    os.Getenv(config.Variable("providers.codex")),
				Claude:   os.Getenv(config.Variable("providers.claude")),
				Opencode: os.Getenv(config.Variable("providers.opencode")),
			}
			if v := os.Getenv(config.Variable("executor.orphan_timeout")); v != "" {
				after, err := time.ParseDuration(v)
				if err != nil {
					return thole.Errorf(thole.CodeInvalid, "%s: %w", config.Variable("executor.orphan_timeout"), err)
				}
				cfg.Orphan = after
			}
			cfg.Logger = slog.New(slog.NewJSONHandler(env.Err, nil))
			return system.ServeExecutord(cmd.Context(), cfg)
		},
	}
	f := serve.Flags()
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "unix:PATH or HOST:PORT")
	f.StringVar(&cfg.TokenFile, "token-file", "", "file with the bearer token the dispatcher shows")
	f.StringVar(&cfg.Dirs.Workspace, "workspace", "/workspace", "the agent's files; synced")
	f.StringVar(&cfg.Dirs.State, "state", "/run/thole/state", "event logs; never synced")
	f.StringVar(&cfg.Dirs.Auth, "auth", "/run/thole/auth", "credentials; never synced")
	f.StringVar(&cfg.Dirs.Home, "agent-home", "/home/agent", "HOME of the agent CLIs")
	f.StringVar(&cfg.Dirs.Tmp, "tmp", "/tmp", "temporary files")
	_ = serve.MarkFlagRequired("token-file")
	cmd.AddCommand(serve)
	return cmd
}
