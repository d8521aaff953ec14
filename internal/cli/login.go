package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/system"
)

func newLogin(env *Env) *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use: "login", Short: "Log in to a team server, or print a link that logs a browser in to a running thole up; list and end logins",
		Long: "With --server URL it logs this user in to a team server: a person confirms a code on the server's page, and commands go there from then on.\n" +
			"Without it prints a link that logs a browser in to the thole up of the home.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if env.Server != "" && env.Server != localServer {
				return env.deviceLogin(cmd.Context(), env.Server, session.Scope(scope))
			}
			home, err := env.home()
			if err != nil {
				return err
			}
			var page system.Page
			err = (&daemonclient.Client{Home: home, NoStart: true, Wait: true}).Call(cmd.Context(), system.MethodLogin, struct{}{}, &page)
			if errors.Is(err, daemonclient.ErrNobody) || thole.CodeOf(err) == thole.CodeUnsupported {
				return thole.Errorf(thole.CodeUnavailable, "no web page is served from %s", home).WithHint("start it with: thole up")
			}
			if err != nil {
				return err
			}
			return env.printValue(page, page.URL)
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "with --server: what commands may do there: read, act (default), or admin, which also manages")
	cmd.AddCommand(newLoginList(env), newLoginRevoke(env))
	return cmd
}

func newLoginList(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List logged-in browsers, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []session.Login
			if err := env.ask(cmd.Context(), session.MethodLoginList, session.TokenParams{}, &all); err != nil {
				return err
			}
			return env.print(all, func(w io.Writer) {
				t := newTable(w)
				putf(t, "ID\tSCOPE\tLOGGED IN\tLAST USED\tEXPIRES\tBROWSER\n")
				for _, one := range all {
					putf(t, "%s\t%s\t%s\t%s\t%s\t%q\n", one.ID, one.Scope, day(one.CreatedAt), day(one.LastUsedAt), day(one.ExpiresAt), one.Client)
				}
				_ = t.Flush()
			})
		},
	}
}

func newLoginRevoke(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Log a browser out, with its open streams and the tokens made with it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.ask(cmd.Context(), session.MethodLoginRevoke, session.TokenParams{ID: args[0]}, nil); err != nil {
				return err
			}
			return env.print(struct{}{}, func(w io.Writer) { putln(w, "revoked "+args[0]) })
		},
	}
}
