package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
)

func newGrant(env *Env) *cobra.Command {
	p := &people{env}
	cmd := &cobra.Command{Use: "grant", Short: "Give, list and take roles: who may do what, and where"}
	cmd.AddCommand(
		p.grantAdd(), p.grantList(), p.grantRevoke(),
	)
	return cmd
}

func (p *people) grantAdd() *cobra.Command {
	var in identity.GrantParams
	var on, expires string
	cmd := &cobra.Command{
		Use: "add ROLE", Short: "Give a user, or the members of a department, a role on the platform, an app, a project, a user or a department", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			in.Role = authz.Role(args[0])
			if in.User == "" && in.Department == "" {
				return thole.Errorf(thole.CodeInvalid, "who gets the role?").WithHint("--user LOGIN or --department NAME")
			}
			kind, name, _ := strings.Cut(on, ":")
			in.Kind, in.On = authz.Kind(kind), name
			if !slices.Contains(authz.Kinds(), in.Kind) || (in.Kind == authz.OnPlatform) != (name == "") {
				return thole.Errorf(thole.CodeInvalid, "--on %q is no place", on).WithHint("platform, or app:NAME, project:NAME, user:LOGIN, department:NAME")
			}
			if expires != "never" {
				if in.Life, _, err = readLife(expires); err != nil {
					return err
				}
			}
			var g identity.GrantDescription
			if err := p.ask(cmd.Context(), identity.MethodGrantAdd, in, &g); err != nil {
				return err
			}
			return p.print(g, func(w io.Writer) { putf(w, "granted %s on %s: %s\n", g.Role, on, g.ID) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.User, "user", "", "login of the user who gets it")
	f.StringVar(&in.Department, "department", "", "name of the department whose members get it")
	f.StringVar(&on, "on", string(authz.OnPlatform), "where it counts: platform, app:NAME, project:NAME, user:LOGIN or department:NAME")
	f.StringVar(&expires, "expires", "never", "days or a duration after which it ends, for example 7d or 12h")
	exclude(cmd, "user", "department")
	return cmd
}

func (p *people) grantList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the grants that you may change, and your own", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := []identity.GrantDescription{}
			if err := p.ask(cmd.Context(), identity.MethodGrantList, identity.GrantParams{}, &all); err != nil {
				return err
			}
			return p.print(all, func(w io.Writer) {
				names := p.names(cmd.Context())
				t := newTable(w)
				putf(t, "ID\tTO\tROLE\tON\tBY\tCREATED\tEXPIRES\n")
				for _, g := range all {
					on := string(g.Kind)
					if g.On != "" {
						on += ":" + nameOf(names, g.On)
					}
					putf(t, "%s\t%s:%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, g.Holder, nameOf(names, g.To), g.Role, on, nameOf(names, string(g.By)), day(g.CreatedAt), day(g.ExpiresAt))
				}
				_ = t.Flush()
			})
		},
	}
}

func (p *people) grantRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke GRANT", Short: "Take a role away; what it opened closes within seconds", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.ask(cmd.Context(), identity.MethodGrantRevoke, identity.GrantParams{ID: args[0]}, &struct{}{}); err != nil {
				return err
			}
			return p.print(map[string]string{"id": args[0], "state": "revoked"}, func(w io.Writer) { putf(w, "revoked %s\n", args[0]) })
		},
	}
}

// role is one of the built-in ones as people see it.
type role struct {
	Role authz.Role          `json:"role"`
	On   []authz.Kind        `json:"on"`
	May  map[string][]string `json:"may"` // actions by relation
}

func newRole(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "role", Short: "Show the roles that can be granted"}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List roles, where each can be granted, and what it allows there", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all := []role{}
			for _, r := range authz.Roles() {
				one := role{Role: r, On: []authz.Kind{}, May: map[string][]string{}}
				for _, k := range authz.Kinds() {
					if r.Grants(k) {
						one.On = append(one.On, k)
					}
				}
				for _, rel := range authz.Relations() {
					for _, a := range authz.Actions() {
						if r.May(a, rel) {
							one.May[string(rel)] = append(one.May[string(rel)], string(a))
						}
					}
				}
				all = append(all, one)
			}
			return env.print(all, func(w io.Writer) {
				t := newTable(w)
				putf(t, "ROLE\tGRANTED ON\tMAY\n")
				for _, r := range all {
					on := make([]string, len(r.On))
					for i, k := range r.On {
						on[i] = string(k)
					}
					putf(t, "%s\t%s\t%s\n", r.Role, strings.Join(on, ", "), does(r))
				}
				_ = t.Flush()
				putln(w, "--json lists every action by its relation to the thing")
			})
		},
	})
	return cmd
}

// roleValues offers a shell the roles.
func roleValues(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if len(args) == 0 {
		for _, r := range authz.Roles() {
			out = append(out, string(r))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func does(r role) string {
	n := 0
	for _, all := range r.May {
		n = max(n, len(all))
	}
	if n == len(authz.Actions()) {
		return "everything"
	}
	return fmt.Sprintf("%d of %d actions", n, len(authz.Actions()))
}
