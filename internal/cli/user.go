package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/tholehq/thole/internal/identity"
)

func newUser(env *Env) *cobra.Command {
	p := &people{env}
	cmd := &cobra.Command{Use: "user", Short: "Add, list, invite, disable and enable users of a server"}
	cmd.AddCommand(
		p.userAdd(), p.userList(),
		p.userLink("invite", identity.MethodUserInvite, "Make another invitation for a user who has not used theirs"),
		p.userLink("reset", identity.MethodUserReset, "Make a link with which a user chooses another password"),
		p.userMove("disable", identity.MethodUserDisable, "Shut a user out: logins, tokens, share links and open streams end at once, and running turns are stopped"),
		p.userMove("enable", identity.MethodUserEnable, "Let a disabled user in again"),
	)
	return cmd
}

func (p *people) userAdd() *cobra.Command {
	var in identity.UserParams
	var service bool
	cmd := &cobra.Command{
		Use: "add LOGIN", Short: "Add a user and print the invitation, which works once and cannot be shown again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Login = args[0]
			if service {
				in.Kind = identity.Service
			}
			var u identity.UserDescription
			if err := p.ask(cmd.Context(), identity.MethodUserAdd, in, &u); err != nil {
				return err
			}
			return p.print(u, func(w io.Writer) { printLink(w, u) })
		},
	}
	cmd.Flags().StringVar(&in.Name, "name", "", "what people call the user (default: the login)")
	cmd.Flags().StringVar(&in.Email, "email", "", "mail address; a provider of logins that proved it lets the invited user in")
	cmd.Flags().BoolVar(&service, "service", false, "a program: it has tokens and no password")
	return cmd
}

func printLink(w io.Writer, u identity.UserDescription) {
	if u.URL == "" {
		putf(w, "added %s\n", u.Login)
		return
	}
	putf(w, "%s is %s; who opens this link within three days chooses the password:\n%s\n", u.Login, u.State, u.URL)
}

func (p *people) userList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List users by login", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const page = 1000
			all := []identity.UserDescription{}
			for after := ""; ; after = all[len(all)-1].Login {
				var some []identity.UserDescription
				if err := p.ask(cmd.Context(), identity.MethodUserList, identity.UserParams{After: after, Limit: page}, &some); err != nil {
					return err
				}
				if all = append(all, some...); len(some) < page {
					break
				}
			}
			return p.print(all, func(w io.Writer) {
				t := newTable(w)
				putf(t, "LOGIN\tNAME\tKIND\tSTATE\tCREATED\tEMAIL\n")
				for _, u := range all {
					putf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", u.Login, u.Name, u.Kind, u.State, day(u.CreatedAt), dash(u.Email))
				}
				_ = t.Flush()
			})
		},
	}
}

func (p *people) userLink(use, method, short string) *cobra.Command {
	return &cobra.Command{
		Use: use + " LOGIN", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var u identity.UserDescription
			if err := p.ask(cmd.Context(), method, identity.UserParams{Login: args[0]}, &u); err != nil {
				return err
			}
			return p.print(u, func(w io.Writer) { printLink(w, u) })
		},
	}
}

func (p *people) userMove(use, method, short string) *cobra.Command {
	return &cobra.Command{
		Use: use + " LOGIN", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.ask(cmd.Context(), method, identity.UserParams{Login: args[0]}, &struct{}{}); err != nil {
				return err
			}
			return p.print(map[string]string{"login": args[0], "state": use + "d"}, func(w io.Writer) { putf(w, "%sd %s\n", use, args[0]) })
		},
	}
}
