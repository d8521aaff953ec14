package cli

import (
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/system"
)

func newExecutor(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "executor", Short: "See executors and save their files, or run the service of one"}
	cfg := system.ExecutordConfig{}
	var box string
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Serve turns, files and terminals of one executor to the dispatcher",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Providers = config.ProvidersOf(os.Getenv)
			if v := os.Getenv(config.Variable("executor.orphan_timeout")); v != "" {
				after, err := time.ParseDuration(v)
				if err != nil {
					return thole.Errorf(thole.CodeInvalid, "%s: %w", config.Variable("executor.orphan_timeout"), err)
				}
				cfg.Orphan = after
			}
			cfg.Leased = system.Leased(os.Getenv)
			if v := os.Getenv(wire.ToolsVariable); v != "" {
				if err := strictjson.Unmarshal([]byte(v), &cfg.Tools); err != nil {
					return thole.Errorf(thole.CodeInvalid, "%s: %w", wire.ToolsVariable, err)
				}
			}
			if box != "" {
				cfg.Box = &wire.Box{}
				if err := strictjson.Unmarshal([]byte(box), cfg.Box); err != nil {
					return thole.Errorf(thole.CodeInvalid, "--box: %w", err)
				}
			}
			cfg.Logger = slog.New(slog.NewJSONHandler(env.Err, nil))
			return system.ServeExecutord(cmd.Context(), cfg)
		},
	}
	f := serve.Flags()
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "unix:PATH, HOST:PORT, or fd:N for a socket that listens already")
	f.StringVar(&cfg.TokenFile, "token-file", "", "file with the bearer token the dispatcher shows; - is stdin")
	f.StringVar(&cfg.While, "while", "", "a file; end when it is removed (default the token's)")
	f.StringVar(&cfg.Note, "note", "", "what every turn says to its readers")
	f.StringVar(&cfg.Dirs.Workspace, "workspace", "/workspace", "the agent's files; synced")
	f.StringVar(&cfg.Dirs.Work, "dir", "", "where agents begin (default the workspace)")
	f.BoolVar(&cfg.InPlace, "in-place", false, "the workspace is a person's own directory; not synced")
	f.StringVar(&cfg.Dirs.Data, "data", "/home/agent/.agent_data", "the agent CLIs' conversations; synced")
	f.StringVar(&cfg.Dirs.State, "state", "/run/thole/state", "event logs; never synced")
	f.StringVar(&cfg.Dirs.Auth, "auth", "/run/thole/auth", "credentials; never synced")
	f.StringVar(&cfg.Dirs.Home, "agent-home", "/home/agent", "HOME of the agent CLIs")
	f.StringVar(&cfg.Dirs.Tmp, "tmp", "/tmp", "temporary files")
	f.StringArrayVar(&cfg.Groups, "group", nil, "directory of a control group in which agents run that have no box")
	f.StringVar(&cfg.Gateway, "gateway", "", "socket of the model gateway, which agents reach through executord")
	f.StringVar(&box, "box", "", "how to make the agent's box, as JSON; without it agents run next to executord")
	_ = serve.MarkFlagRequired("token-file")
	cmd.AddCommand(newExecutorList(env), newExecutorShow(env), newExecutorSync(env), newExecutorPaths(env), serve, newBox(), newFiles())
	return cmd
}

// newFiles is the process that reads the files of a stopped executor: see package apart.
func newFiles() *cobra.Command {
	var dir, data string
	cmd := &cobra.Command{
		Use: "files", Short: "Read the files of a stopped executor for the owner of the home", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return system.ServeFiles(cmd.Context(), dir, data) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the workspace; without it there are only conversations")
	cmd.Flags().StringVar(&data, "data", "", "the agent CLIs' conversations; without it they are in the workspace")
	return cmd
}

// newBox is how a server that is root starts a box: see sandbox.Descend.
func newBox() *cobra.Command {
	return &cobra.Command{
		Use: "box UID DESCRIPTORS COUNT FILE... PROGRAM ARGUMENT...", Short: "Run a program as another user that sees the named files",
		Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			uid, err1 := strconv.Atoi(args[0])
			keep, err2 := strconv.Atoi(args[1])
			n, err3 := strconv.Atoi(args[2])
			if err1 != nil || err2 != nil || err3 != nil || n < 0 || len(args) < n+4 {
				return thole.Errorf(thole.CodeInvalid, "executor box wants UID DESCRIPTORS COUNT FILE... PROGRAM ARGUMENT...").WithHint("thole itself calls it")
			}
			return sandbox.Descend(uid, keep, args[3:3+n], args[3+n:])
		},
	}
}
