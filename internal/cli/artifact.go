package cli

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newArtifact(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "artifact", Short: "Read and keep result files"}
	cmd.AddCommand(newArtifactRead(env), newArtifactInspect(env), newArtifactPin(env), newArtifactRevoke(env))
	return cmd
}

func newArtifactRead(env *Env) *cobra.Command {
	var p wire.ArtifactParams
	var most int64
	cmd := &cobra.Command{
		Use: "read ARTIFACT", Short: "Write an artifact to standard output, after proving it whole", Args: named(&p.ArtifactID, "artifact-id"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.ArtifactID == "" && p.LeaseID == "" {
				return thole.Errorf(thole.CodeInvalid, "read which artifact?").WithHint("name it, or pass --artifact-read-lease-id of a lease you hold")
			}
			if p.Offset < 0 || most < 0 {
				return thole.Errorf(thole.CodeInvalid, "--offset and --max-bytes must not be negative")
			}
			if p.LeaseID == "" {
				var l wire.Lease
				if err := env.ask(cmd.Context(), wire.ArtifactLease, wire.ArtifactParams{ArtifactID: p.ArtifactID}, &l); err != nil {
					return err
				}
				if env.JSON {
					return env.print(l, nil)
				}
				p.LeaseID = l.LeaseID
			}
			left := most
			for read := (wire.ArtifactParams{LeaseID: p.LeaseID, Offset: p.Offset}); ; {
				read.Limit = int(min(left, artifactChunk))
				var c wire.Chunk
				if err := env.ask(cmd.Context(), wire.ArtifactRead, read, &c); err != nil {
					return err
				}
				if _, err := env.bytes().Write(c.Data); err != nil {
					return err
				}
				if left -= int64(len(c.Data)); c.Last || most > 0 && left == 0 {
					return nil
				}
				read.Offset += int64(len(c.Data))
			}
		},
	}
	cmd.Flags().StringVar(&p.ArtifactID, "artifact-id", "", "same as ARTIFACT")
	cmd.Flags().StringVar(&p.LeaseID, "artifact-read-lease-id", "", "read under this lease instead of taking one")
	cmd.Flags().Int64Var(&p.Offset, "offset", 0, "begin at this byte")
	cmd.Flags().Int64Var(&most, "max-bytes", 0, "write at most this many bytes (0: to the end)")
	return cmd
}

// artifactChunk is what one call asks for.
const artifactChunk = 1 << 20

func newArtifactInspect(env *Env) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use: "inspect ARTIFACT", Short: "Show what an artifact is, where it is, whether it is whole and how long it is kept", Args: named(&id, "artifact-id"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if id == "" {
				return thole.Errorf(thole.CodeInvalid, "inspect which artifact?").WithHint("name it: thole job query shows the one of a job")
			}
			var a wire.Artifact
			if err := env.ask(cmd.Context(), wire.ArtifactInspect, wire.ArtifactParams{ArtifactID: id}, &a); err != nil {
				return err
			}
			return env.print(a, func(w io.Writer) { printArtifact(w, a) })
		},
	}
	cmd.Flags().StringVar(&id, "artifact-id", "", "same as ARTIFACT")
	return cmd
}

func printArtifact(w io.Writer, a wire.Artifact) {
	line := func(name, value string) { putf(w, "%-12s %s\n", name, value) }
	line("artifact", a.ArtifactID)
	line("job", a.SourceJobID)
	line("name", strconv.Quote(a.Name))
	line("content", fmt.Sprintf("%s, %d bytes, sha256 %s", a.ContentType, a.SizeBytes, a.SHA256))
	line("file", a.ManagedPath)
	switch {
	case !a.RemovedAt.IsZero():
		line("removed", local(a.RemovedAt))
	case a.Held:
		line("kept", "while a running job or an open batch refers to it")
	default:
		line("kept", "until "+local(a.RetentionUntil))
	}
	if !a.OperatorPinUntil.IsZero() {
		line("pinned", "until "+local(a.OperatorPinUntil))
	}
	switch {
	case a.Damage != "":
		line("damage", a.Damage)
	case a.RemovedAt.IsZero():
		line("bytes", "whole")
	}
}

func newArtifactRevoke(env *Env) *cobra.Command {
	var p wire.ArtifactParams
	return &cobra.Command{
		Use: "revoke LEASE", Short: "End a lease before its deadline, so that nothing more is read under it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.LeaseID = args[0]
			if err := env.ask(cmd.Context(), wire.ArtifactRevoke, p, nil); err != nil {
				return err
			}
			return env.print(map[string]any{"artifact_recovery_lease_id": p.LeaseID, "revoked": true}, func(w io.Writer) { putln(w, "revoked") })
		},
	}
}

func newArtifactPin(env *Env) *cobra.Command {
	var id string
	var keep time.Duration
	cmd := &cobra.Command{
		Use: "pin ARTIFACT", Short: "Keep an artifact longer than its retention", Args: named(&id, "artifact-id"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if id == "" {
				return thole.Errorf(thole.CodeInvalid, "pin which artifact?").WithHint("name it: thole job query shows the one of a job")
			}
			until := time.Now().Add(keep)
			if keep <= 0 {
				return thole.Errorf(thole.CodeInvalid, "--for must be longer than 0: a pin only grows")
			}
			var a wire.Artifact
			if err := env.ask(cmd.Context(), wire.ArtifactPin, wire.ArtifactParams{ArtifactID: id, PinUntil: until}, &a); err != nil {
				return err
			}
			return env.print(a, func(w io.Writer) { putf(w, "kept at least until %s\n", local(a.OperatorPinUntil)) })
		},
	}
	cmd.Flags().StringVar(&id, "artifact-id", "", "same as ARTIFACT")
	cmd.Flags().DurationVar(&keep, "for", 7*24*time.Hour, "how long from now")
	return cmd
}
