package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/system"
)

func newDaemon(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "daemon", Short: "Manage the process that owns a home; commands start it by themselves"}
	cmd.AddCommand(newDaemonRun(env), newDaemonStatus(env), newDaemonStop(env))
	return cmd
}

func newDaemonRun(env *Env) *cobra.Command {
	var idle time.Duration
	var takeover bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run the daemon in the foreground until it is idle", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var flags map[string]string
			if cmd.Flags().Changed("idle-timeout") {
				flags = map[string]string{"daemon.idle_exit": idle.String()}
			}
			cfg, err := env.config(flags)
			if err != nil {
				daemonclient.Report(err)
				return err
			}
			log := env.logger(cfg)
			reason, err := system.Run(cmd.Context(), system.Options{
				Config: cfg, Role: "daemon", Idle: cfg.Daemon.IdleExit, Takeover: takeover, Log: log, Ready: daemonclient.Report,
			})
			if err != nil {
				return err
			}
			log.Info("daemon ended", "reason", string(reason))
			return nil
		},
	}
	cmd.Flags().DurationVar(&idle, "idle-timeout", 0, "exit after this long without clients and work instead of after daemon.idle_exit (0: never)")
	cmd.Flags().BoolVar(&takeover, "takeover", false, "ask a running owner of the home to hand it over")
	return cmd
}

func newDaemonStatus(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show who owns the home and why it is running", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := env.home()
			if err != nil {
				return err
			}
			var st wire.Status
			if err := (&daemonclient.Client{Home: home, NoStart: true}).Call(cmd.Context(), wire.DaemonStatus, struct{}{}, &st); err != nil {
				return err
			}
			return env.print(st, func(w io.Writer) {
				putf(w, "%s %s, pid %d, owns %s since %s\n", st.Role, st.Version, st.PID, st.Home, local(st.StartedAt))
				switch {
				case st.Staying != "":
					putln(w, "it stays because "+st.Staying)
				case !st.ExitsAt.IsZero():
					putf(w, "it exits at %s if nothing happens\n", local(st.ExitsAt))
				}
			})
		},
	}
}

func newDaemonStop(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: "Stop the process that owns the home; supervised commands go on", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := env.home()
			if err != nil {
				return err
			}
			var st wire.Status
			owner := &daemonclient.Client{Home: home, NoStart: true}
			if err := owner.Call(cmd.Context(), wire.DaemonStatus, struct{}{}, &st); err != nil {
				return err
			}
			old := procid.Of(st.PID)
			if err := owner.Call(cmd.Context(), wire.DaemonStop, wire.StopParams{}, nil); err != nil && thole.CodeOf(err) != thole.CodeUnavailable {
				return err
			}
			// Stopped means gone. A successor may own the home by then.
			for old.Alive() == nil {
				if err := backoff.Sleep(cmd.Context(), 5*time.Millisecond); err != nil {
					return err
				}
			}
			return env.print(st, func(w io.Writer) { putf(w, "stopped pid %d\n", st.PID) })
		},
	}
}
