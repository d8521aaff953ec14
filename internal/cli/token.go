package cli

import (
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
)

func newToken(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Create, list and revoke API tokens for scripts that use the HTTP interface"}
	cmd.AddCommand(newTokenCreate(env), newTokenList(env), newTokenRevoke(env))
	return cmd
}

func newTokenCreate(env *Env) *cobra.Command {
	var life time.Duration
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a token and print it; it cannot be shown again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if life < 0 || life%time.Second != 0 {
				return thole.Errorf(thole.CodeInvalid, "--expires-in %s is not a number of whole seconds", life)
			}
			var t session.Description
			if err := env.ask(cmd.Context(), session.MethodTokenCreate, session.TokenParams{Name: args[0], Life: int64(life / time.Second)}, &t); err != nil {
				return err
			}
			return env.print(t, func(w io.Writer) { putln(w, t.Secret) })
		},
	}
	cmd.Flags().DurationVar(&life, "expires-in", 0, "for example 720h (default never)")
	return cmd
}

func newTokenList(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tokens, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []session.Description
			if err := env.ask(cmd.Context(), session.MethodTokenList, session.TokenParams{}, &all); err != nil {
				return err
			}
			return env.print(all, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				putf(t, "ID\tNAME\tCREATED\tLAST USED\tEXPIRES\n")
				for _, one := range all {
					putf(t, "%s\t%s\t%s\t%s\t%s\n", one.ID, one.Name, day(one.CreatedAt), day(one.LastUsedAt), day(one.ExpiresAt))
				}
				_ = t.Flush()
			})
		},
	}
}

func day(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Local().Format(time.DateTime)
}

func newTokenRevoke(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token; its clients are refused from now on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.ask(cmd.Context(), session.MethodTokenRevoke, session.TokenParams{ID: args[0]}, nil); err != nil {
				return err
			}
			return env.print(struct{}{}, func(w io.Writer) { putln(w, "revoked "+args[0]) })
		},
	}
}
