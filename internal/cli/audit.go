package cli

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newAudit(env *Env) *cobra.Command {
	var p wire.AuditParams
	var chain bool
	var f audit.Filter
	list := &cobra.Command{
		Use: "list", Short: "List the decisions that moved jobs, batches and attempts, or with --chain who did what", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if chain {
				f.Limit = p.Limit
				return env.listChain(cmd.Context(), f)
			}
			var out []wire.Audit
			if err := env.ask(cmd.Context(), wire.AuditList, p, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) {
				t := newTable(w)
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
	list.Flags().BoolVar(&chain, "chain", false, "list the audit chain: who did what, and what was refused")
	list.Flags().StringVar(&f.Actor, "actor", "", "of the chain: only what this user, system or agent did")
	list.Flags().StringVar(&f.Action, "action", "", "of the chain: only this action, or all that begin so: login.")
	list.Flags().StringVar(&f.Resource, "resource", "", "of the chain: only what was done to the thing with this id")
	list.Flags().StringVar((*string)(&f.Outcome), "outcome", "", "of the chain: allowed, denied or failed")
	cmd := &cobra.Command{Use: "audit", Short: "List, verify and export audit records"}
	cmd.AddCommand(list, newAuditVerify(env), newAuditExport(env))
	return cmd
}
