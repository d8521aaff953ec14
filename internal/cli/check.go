package cli

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newCheck(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check the invariants of stored deliveries, that every secret opens and that the audit chain is whole", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out wire.Checked
			if err := env.ask(cmd.Context(), wire.Check, struct{}{}, &out); err != nil {
				return err
			}
			if err := env.print(out, func(w io.Writer) {
				for _, v := range out.Violations {
					putf(w, "broken: %s: %s\n", v.Rule, v.Row)
				}
				for _, note := range out.Notes {
					putln(w, "not checked: "+note)
				}
				if len(out.Violations) == 0 {
					putln(w, "all rules hold")
				}
			}); err != nil {
				return err
			}
			if len(out.Violations) > 0 {
				return ExitError(exitFailed)
			}
			return nil
		},
	}
}
