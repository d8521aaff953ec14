package cli

import (
	"io"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/inbox"
)

func newDesktopPreflight(env *Env) *cobra.Command {
	var p wire.DesktopPreflightParams
	cmd := &cobra.Command{
		Use: "bridge-preflight", Short: "Begin a wake-up of a bridge: do what is overdue and publish the inbox", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.BridgeThreadID == "" {
				return thole.Errorf(thole.CodeInvalid, "no bridge thread").WithHint("pass --bridge-thread-id")
			}
			p.PreflightID = newRequest()
			var s wire.DesktopSnapshot
			if err := env.ask(cmd.Context(), wire.DesktopPreflight, p, &s); err != nil {
				return err
			}
			return env.print(s, func(w io.Writer) { printSnapshot(w, s) })
		},
	}
	cmd.Flags().StringVar(&p.BridgeThreadID, "bridge-thread-id", "", "thread of the bridge")
	return cmd
}

// newDesktopReadSnapshot reads files and nothing else: a heartbeat can neither open the store
// nor reach the socket.
func newDesktopReadSnapshot(env *Env) *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "read-snapshot", Short: "Read the inbox that a preflight published, from its files alone", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			home, err := env.home()
			if err != nil {
				return err
			}
			if revision <= 0 {
				return thole.Errorf(thole.CodeInvalid, "no revision").WithHint("pass --expected-revision with what bridge-preflight returned")
			}
			s, err := inbox.In(home).Read(revision)
			if err != nil {
				return err
			}
			return env.print(s, func(w io.Writer) { printSnapshot(w, s) })
		},
	}
	cmd.Flags().Int64Var(&revision, "expected-revision", 0, "snapshot_revision of this wake-up's preflight; another one is an error")
	return cmd
}

func printSnapshot(w io.Writer, s wire.DesktopSnapshot) {
	putf(w, "revision %d, %s\n", s.SnapshotRevision, s.ManifestPath)
	putf(w, "%d ready, %d being armed, %d to be paused\n", len(s.Ready), len(s.Arming), len(s.PauseDue))
	printReady(w, s.Ready)
}

func printReady(w io.Writer, all []wire.DesktopReady) []wire.DesktopReady {
	for _, r := range all {
		putf(w, "%s  batch %s  attempt %s  generation %d  revision %d\n", r.SourceThreadID, r.BatchID, r.AttemptID, r.Generation, r.SnapshotRevision)
	}
	return all
}

// newDesktopPeek shows one list of the inbox without publishing anything.
func newDesktopPeek(env *Env, use, short string, show func(io.Writer, *wire.DesktopSnapshot) any) *cobra.Command {
	var p wire.DesktopPreflightParams
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s wire.DesktopSnapshot
			if err := env.ask(cmd.Context(), wire.DesktopPeek, p, &s); err != nil {
				return err
			}
			return env.print(show(io.Discard, &s), func(w io.Writer) { show(w, &s) })
		},
	}
	cmd.Flags().StringVar(&p.BridgeThreadID, "bridge-thread-id", "", "thread of the bridge")
	return cmd
}

// desktopFlags adds flags that name an attempt.
type desktopFlags func(*cobra.Command, *wire.DesktopArmParams)

func generationFlags(cmd *cobra.Command, p *wire.DesktopArmParams) {
	cmd.Flags().StringVar(&p.SourceThreadID, "source-thread-id", "", "thread that is woken")
	cmd.Flags().StringVar(&p.Endpoint, "endpoint", "", "Codex home of the thread, where its id is not enough")
	cmd.Flags().Int64Var(&p.Generation, "generation", 0, "generation of the attempt")
}

func armFlags(cmd *cobra.Command, p *wire.DesktopArmParams) {
	generationFlags(cmd, p)
	cmd.Flags().StringVar(&p.AttemptID, "attempt-id", "", "attempt")
	cmd.Flags().StringVar(&p.BridgeRequest, "bridge-request-id", "", "id of the bridge's wake-up; only the one that took the lease may go on")
}

func leaseFlag(cmd *cobra.Command, p *wire.DesktopArmParams) {
	cmd.Flags().StringVar(&p.Lease, "bridge-arm-lease-id", "", "lease that note-arm-pending returned")
}

func crossFlags(cmd *cobra.Command, p *wire.DesktopArmParams) {
	generationFlags(cmd, p)
	cmd.Flags().StringVar(&p.AttemptID, "attempt-id", "", "attempt")
	cmd.Flags().StringVar(&p.BatchID, "batch-id", "", "batch")
	cmd.Flags().Int64Var(&p.SnapshotRevision, "expected-snapshot-revision", 0, "snapshot_revision of the token")
}

// newDesktopCall is a call of a bridge or of a woken thread. Its answer is printed whatever it
// is; only one that goes on ends with exit status 0.
func newDesktopCall(env *Env, use, short, method string, flags ...desktopFlags) *cobra.Command {
	var p wire.DesktopArmParams
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.SourceThreadID == "" {
				return thole.Errorf(thole.CodeInvalid, "no thread").WithHint("pass --source-thread-id")
			}
			var a wire.DesktopAnswer
			err := env.ask(cmd.Context(), method, p, &a)
			if c := thole.CodeOf(err); err != nil && method == wire.DesktopCross && (c == thole.CodeUnavailable || c == thole.CodeInternal) {
				a = wire.DesktopAnswer{Outcome: string(thole.OutcomeHelperFailed), DesktopToken: p.DesktopToken, Why: err.Error()}
			} else if err != nil {
				return err
			}
			if err := env.print(a, func(w io.Writer) { printAnswer(w, a) }); err != nil {
				return err
			}
			return outcomeError(a)
		},
	}
	for _, add := range flags {
		add(cmd, &p)
	}
	return cmd
}

func printAnswer(w io.Writer, a wire.DesktopAnswer) {
	if a.Payload != "" {
		putln(w, a.Payload)
		return
	}
	putln(w, a.Outcome)
	if a.Lease != "" {
		putf(w, "lease %s until %s\n", a.Lease, local(a.LeaseDeadline))
	}
}

// outcomeError is what keeps a script from going on.
func outcomeError(a wire.DesktopAnswer) error {
	code := thole.CodeConflict
	switch thole.DesktopOutcome(a.Outcome) {
	case thole.OutcomeUnchanged, thole.OutcomeArmPending, thole.OutcomeArmed, thole.OutcomeAlreadyArmed, thole.OutcomeAbandoned,
		thole.OutcomeQuiesced, thole.OutcomeCrossed:
		return nil
	case thole.OutcomeLeaseHeld, thole.OutcomeNotReady, thole.OutcomeTooEarly:
		code = thole.CodeBusy
	case thole.OutcomeHelperFailed:
		code = thole.CodeUnavailable
	}
	if a.Why != "" {
		return thole.Errorf(code, "%s: %s", a.Outcome, a.Why)
	}
	return thole.Errorf(code, "%s", a.Outcome)
}
