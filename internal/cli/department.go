package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tholehq/thole/internal/identity"
)

func newDepartment(env *Env) *cobra.Command {
	p := &people{env}
	var parent string
	add := p.departmentDo("add NAME", identity.MethodDepartmentAdd, "Add a department", "added", &parent)
	add.Flags().StringVar(&parent, "parent", "", "department that it is a part of")
	var to string
	move := p.departmentDo("move NAME", identity.MethodDepartmentMove, "Put a department below another, or at the top", "moved", &to)
	move.Flags().StringVar(&to, "parent", "", "department that it becomes a part of (default: none)")
	cmd := &cobra.Command{Use: "department", Short: "Add, list, move and remove departments, and say who belongs to them"}
	cmd.AddCommand(
		add, move, p.departmentList(),
		p.departmentDo("rm NAME", identity.MethodDepartmentRemove, "Remove a department without members, grants and departments below it", "removed", nil),
		p.departmentMember("join", identity.MethodDepartmentJoin, "Make a user a member of a department"),
		p.departmentMember("leave", identity.MethodDepartmentLeave, "Take a user out of a department"),
	)
	return cmd
}

func (p *people) departmentDo(use, method, short, said string, parent *string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := identity.DepartmentParams{Name: args[0]}
			if parent != nil {
				in.Parent = *parent
			}
			var out identity.DepartmentDescription
			if err := p.ask(cmd.Context(), method, in, &out); err != nil {
				return err
			}
			out.Name = args[0]
			return p.print(out, func(w io.Writer) { putf(w, "%s %s\n", said, args[0]) })
		},
	}
}

func (p *people) departmentMember(use, method, short string) *cobra.Command {
	return &cobra.Command{
		Use: use + " NAME LOGIN", Short: short, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.ask(cmd.Context(), method, identity.DepartmentParams{Name: args[0], User: args[1]}, &struct{}{}); err != nil {
				return err
			}
			return p.print(map[string]string{"department": args[0], "login": args[1], "state": use}, func(w io.Writer) { putf(w, "%s: %s %ss\n", args[0], args[1], use) })
		},
	}
}

func (p *people) departmentList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List departments and their members", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := []identity.DepartmentDescription{}
			if err := p.ask(cmd.Context(), identity.MethodDepartmentList, identity.DepartmentParams{}, &all); err != nil {
				return err
			}
			return p.print(all, func(w io.Writer) {
				names := p.names(cmd.Context())
				t := newTable(w)
				putf(t, "NAME\tPART OF\tMEMBERS\n")
				for _, d := range all {
					members := make([]string, len(d.Members))
					for i, m := range d.Members {
						members[i] = nameOf(names, string(m))
					}
					putf(t, "%s\t%s\t%s\n", d.Name, dash(nameOf(names, string(d.Parent))), dash(strings.Join(members, ", ")))
				}
				_ = t.Flush()
			})
		},
	}
}
