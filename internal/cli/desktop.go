package cli

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newDesktop(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "desktop", Short: "Let heartbeats of the Codex Desktop app fetch results (off by default; never seen with a real app)"}
	cmd.AddCommand(newDesktopInstallation(env), newDesktopBinding(env), newDesktopPreflight(env), newDesktopReadSnapshot(env),
		newDesktopPeek(env, "claim-next-ready", "Show the next thread that a bridge may wake; changes nothing", func(w io.Writer, s *wire.DesktopSnapshot) any {
			s.Ready = s.Ready[:min(len(s.Ready), 1)]
			return printReady(w, s.Ready)
		}),
		newDesktopPeek(env, "list-arm-pending", "List attempts whose heartbeat is being armed", func(w io.Writer, s *wire.DesktopSnapshot) any {
			for _, a := range s.Arming {
				putf(w, "%s  attempt %s  generation %d  until %s\n", a.SourceThreadID, a.AttemptID, a.Generation, local(a.Deadline))
			}
			return s.Arming
		}),
		newDesktopPeek(env, "list-pause-due", "List heartbeats that should be paused by now", func(w io.Writer, s *wire.DesktopSnapshot) any {
			for _, b := range s.PauseDue {
				putf(w, "%s  automation %s  generation %d  until %s\n", b.SourceThreadID, b.AutomationID, b.ArmedGeneration, local(b.PauseDeadline))
			}
			return s.PauseDue
		}),
		newDesktopCall(env, "note-arm-pending", "Record that a bridge is about to arm a thread's heartbeat, before it does", wire.DesktopNoteArmPending, armFlags),
		newDesktopCall(env, "note-arm", "Record that a thread's heartbeat was armed", wire.DesktopNoteArm, armFlags, leaseFlag),
		newDesktopCall(env, "reconcile", "Settle an arming whose end nobody reported, by what the heartbeat's file shows", wire.DesktopReconcile, armFlags),
		newDesktopCall(env, "note-paused", "Record that a heartbeat was paused for the generation it was armed for", wire.DesktopNotePaused, generationFlags),
		newDesktopCall(env, "note-boundary-crossed", "Print what a woken thread is to read; once for each batch", wire.DesktopCross, crossFlags),
		newDesktopReadArtifact(env))
	return cmd
}

func newDesktopReadArtifact(env *Env) *cobra.Command {
	cmd := newArtifactRead(env)
	cmd.Use, cmd.Short = "read-artifact ARTIFACT", "Write an artifact that was handed over to standard output, for an operator"
	return cmd
}

func newDesktopInstallation(env *Env) *cobra.Command {
	show := func(cmd *cobra.Command, method string, p any) error {
		var in wire.DesktopInstall
		if err := env.ask(cmd.Context(), method, p, &in); err != nil {
			return err
		}
		return env.print(in, func(w io.Writer) { printInstallation(w, in) })
	}
	cmd := &cobra.Command{
		Use: "installation-state", Short: "Show what is known of the Desktop app of this machine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd, wire.DesktopInstallation, struct{}{}) },
	}
	var p wire.DesktopInstallationParams
	repair := &cobra.Command{
		Use: "repair", Short: "Record what you validated of the Desktop app; what is not named is unknown", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.ReadTransport == "" {
				return thole.Errorf(thole.CodeInvalid, "no read transport").WithHint("pass --read-transport direct_file_read or helper_cli_read")
			}
			return show(cmd, wire.DesktopInstallationRepair, p)
		},
	}
	f := repair.Flags()
	f.StringVar(&p.ReadTransport, "read-transport", "", "how bridges read the inbox: direct_file_read or helper_cli_read")
	f.StringVar(&p.DesktopCapabilities.ReadTransport, "read-transport-capability", "unknown", "a heartbeat runs the preflight and reads the inbox without approval: unknown, validated or unavailable")
	f.StringVar(&p.ArtifactRead, "artifact-read-capability", "unknown", "a heartbeat reads artifacts: unknown, validated or unavailable")
	f.StringVar(&p.Writeback, "writeback-capability", "unknown", "what a heartbeat reports is written down: unknown, validated or unavailable")
	cmd.AddCommand(repair)
	return cmd
}

func printInstallation(w io.Writer, in wire.DesktopInstall) {
	t := newTable(w)
	line := func(name, value string) { putf(t, "%s\t%s\n", name, value) }
	state := "off"
	switch {
	case in.Enabled && in.Valid:
		state = "on and validated"
	case in.Enabled:
		state = "on, not validated: nothing is armed"
	}
	line("channel", state)
	line("read transport", dash(in.ReadTransport)+", generation "+strconv.FormatInt(in.Generation, 10))
	line("read", in.DesktopCapabilities.ReadTransport)
	line("artifact read", in.ArtifactRead)
	line("writeback", in.Writeback)
	line("validated", local(in.ValidatedAt))
	if in.Fingerprint != "" && in.Fingerprint != in.Observed {
		line("problem", "the app, its helpers or the permissions of files are not those that were validated")
	}
	_ = t.Flush()
}

func newDesktopBinding(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "binding", Short: "Tie threads of the Desktop app to the heartbeats that wake them"}
	var p wire.DesktopBindingParams
	one := func(cmd *cobra.Command, method string, p wire.DesktopBindingParams) error {
		if p.SourceThreadID == "" {
			return thole.Errorf(thole.CodeInvalid, "no thread").WithHint("pass --source-thread-id")
		}
		var err error
		if p.Endpoint, err = endpointFor(string(thole.TargetDesktop), p.Endpoint); err != nil {
			return err
		}
		var b wire.DesktopBound
		if err := env.ask(cmd.Context(), method, p, &b); err != nil {
			return err
		}
		return env.print(b, func(w io.Writer) { printBinding(w, b) })
	}
	flags := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&p.SourceThreadID, "source-thread-id", "", "thread that is woken")
		c.Flags().StringVar(&p.Endpoint, "endpoint", "", "Codex home of the thread (default $CODEX_HOME)")
		return c
	}
	repair := flags(&cobra.Command{
		Use: "repair", Short: "Bind a thread to a paused heartbeat of the app, or bring a degraded binding back", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.AutomationID == "" || p.BridgeThreadID == "" {
				return thole.Errorf(thole.CodeInvalid, "no heartbeat or no bridge").WithHint("pass --caller-automation-id and --bridge-thread-id")
			}
			return one(cmd, wire.DesktopBindingRepair, p)
		},
	})
	repair.Flags().StringVar(&p.AutomationID, "caller-automation-id", "", "heartbeat of the thread, as the app names it")
	repair.Flags().StringVar(&p.BridgeThreadID, "bridge-thread-id", "", "thread of the app that arms it")
	unbind := flags(&cobra.Command{
		Use: "unbind", Short: "Let no heartbeat wake a thread any more", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return one(cmd, wire.DesktopBindingUnbind, p) },
	})
	unbind.Flags().BoolVar(&p.Delete, "delete-automation", false, "refused: only the app deletes its automations")
	list := &cobra.Command{
		Use: "list", Short: "List bindings and why nothing is armed for them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []wire.DesktopBound
			if err := env.ask(cmd.Context(), wire.DesktopBindingList, struct{}{}, &all); err != nil {
				return err
			}
			return env.print(all, func(w io.Writer) {
				if len(all) == 0 {
					putln(w, "no thread is bound; thole desktop binding repair binds one")
				}
				for _, b := range all {
					printBinding(w, b)
				}
			})
		},
	}
	cmd.AddCommand(repair, unbind, list)
	return cmd
}

func printBinding(w io.Writer, b wire.DesktopBound) {
	putf(w, "%s  %s  automation %s  bridge %s\n", b.SourceThreadID, b.State, b.AutomationID, b.BridgeThreadID)
	if b.Problem != "" {
		putf(w, "  nothing is armed: %s\n", b.Problem)
	}
	if b.ArmedGeneration > 0 {
		quiet := "not quiesced; to be paused until " + local(b.PauseDeadline)
		if !b.QuiescedAt.IsZero() {
			quiet = "quiesced " + local(b.QuiescedAt)
		}
		putf(w, "  armed for generation %d, %s\n", b.ArmedGeneration, quiet)
	}
	if b.Replaced != "" {
		quiet := "not proven to be quiesced: what it wakes finds nothing"
		if b.OldQuiesced {
			quiet = "quiesced"
		}
		putf(w, "  replaced automation %s, %s\n", b.Replaced, quiet)
	}
	for _, n := range b.Next {
		putln(w, "  "+n)
	}
}
