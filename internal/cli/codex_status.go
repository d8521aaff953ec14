package cli

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/daemon/wire"
)

// codexStatus is what `thole codex status --json` prints.
type codexStatus struct {
	Sessions []wire.CodexSession `json:"sessions"`
	Held     []wire.Batch        `json:"held"`
}

func newCodexStatus(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether results reach each open session, and what waits for you", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var st codexStatus
			if err := env.ask(ctx, wire.SessionList, wire.SessionListParams{}, &st.Sessions); err != nil {
				return err
			}
			for i, s := range st.Sessions {
				if err := env.ask(ctx, wire.SessionInspect, wire.SessionParams{SessionID: s.ID}, &st.Sessions[i]); err != nil {
					return err
				}
			}
			if err := env.ask(ctx, wire.BatchList, wire.BatchListParams{Held: true}, &st.Held); err != nil {
				return err
			}
			return env.print(st, func(w io.Writer) {
				if len(st.Sessions) == 0 {
					putln(w, "no sessions; open one with: thole codex run --new-thread")
				}
				for i, s := range st.Sessions {
					if i > 0 {
						putln(w)
					}
					printSession(w, s)
				}
				for _, b := range st.Held {
					putf(w, "\nheld             thread %s: %s (%s)\nnext             thole batch inspect-head --source-thread-id %s\n",
						b.SourceThreadID, b.Summary, b.HeldFor, b.SourceThreadID)
				}
			})
		},
	}
}
