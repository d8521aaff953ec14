package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newArtifact(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "artifact", Short: "Read and keep result files"}
	cmd.AddCommand(newArtifactRead(env), newArtifactPin(env))
	return cmd
}

func newArtifactRead(env *Env) *cobra.Command {
	var p wire.ArtifactParams
	cmd := &cobra.Command{
		Use: "read", Short: "Write an artifact to standard output, after proving it whole", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.ArtifactID == "" && p.LeaseID == "" {
				return thole.Errorf(thole.CodeInvalid, "read which artifact?").WithHint("pass --artifact-id, or --artifact-read-lease-id of a lease you hold")
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
			for read := (wire.ArtifactParams{LeaseID: p.LeaseID}); ; {
				var c wire.Chunk
				if err := env.ask(cmd.Context(), wire.ArtifactRead, read, &c); err != nil {
					return err
				}
				if _, err := env.bytes().Write(c.Data); err != nil {
					return err
				}
				if c.Last {
					return nil
				}
				read.Offset += int64(len(c.Data))
			}
		},
	}
	cmd.Flags().StringVar(&p.ArtifactID, "artifact-id", "", "artifact")
	cmd.Flags().StringVar(&p.LeaseID, "artifact-read-lease-id", "", "read under this lease instead of taking one")
	return cmd
}

func newArtifactPin(env *Env) *cobra.Command {
	var id string
	var keep time.Duration
	cmd := &cobra.Command{
		Use: "pin", Short: "Keep an artifact longer than its retention", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if id == "" {
				return thole.Errorf(thole.CodeInvalid, "pin which artifact?").WithHint("pass --artifact-id")
			}
			until := time.Now().Add(keep)
			if err := env.ask(cmd.Context(), wire.ArtifactPin, wire.ArtifactParams{ArtifactID: id, PinUntil: until}, nil); err != nil {
				return err
			}
			return env.print(map[string]any{"artifact_id": id, "operator_pin_until": until}, func(w io.Writer) {
				putf(w, "kept at least until %s\n", local(until))
			})
		},
	}
	cmd.Flags().StringVar(&id, "artifact-id", "", "artifact")
	cmd.Flags().DurationVar(&keep, "for", 7*24*time.Hour, "how long from now")
	return cmd
}
