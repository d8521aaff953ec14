package cli

import (
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newAudit(env *Env) *cobra.Command {
	var p wire.AuditParams
	list := &cobra.Command{
		Use: "list", Short: "List the decisions that moved jobs, batches and attempts, with their proof", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out []wire.Audit
			if err := env.ask(cmd.Context(), wire.AuditList, p, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				for _, a := range out {
					ledgerLine(t, a)
				}
				_ = t.Flush()
			})
		},
	}
	list.Flags().StringVar(&p.JobID, "job-id", "", "only what concerns this job")
	list.Flags().StringVar(&p.BatchID, "batch-id", "", "only what concerns this batch")
	threadFlags(list, &p.SourceThreadID, &p.Endpoint)
	list.Flags().IntVar(&p.Limit, "limit", 200, "the newest this many")
	cmd := &cobra.Command{Use: "audit", Short: "List audit rows"}
	cmd.AddCommand(list)
	return cmd
}
