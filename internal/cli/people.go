package cli

import (
	"context"

	"github.com/tholehq/thole/internal/identity"
)

// people asks about users and grants: a team server, or the home's own as the user of this
// machine.
type people struct{ *Env }

// names are the logins of users and the names of departments by id, for tables; none where
// the caller may not list them.
func (p *people) names(ctx context.Context) map[string]string {
	out := map[string]string{}
	var users []identity.UserDescription
	if p.ask(ctx, identity.MethodUserList, identity.UserParams{Limit: 1000}, &users) == nil {
		for _, u := range users {
			out[string(u.ID)] = u.Login
		}
	}
	var departments []identity.DepartmentDescription
	if p.ask(ctx, identity.MethodDepartmentList, identity.DepartmentParams{}, &departments) == nil {
		for _, d := range departments {
			out[string(d.ID)] = d.Name
		}
	}
	return out
}

func nameOf(names map[string]string, id string) string {
	if n := names[id]; n != "" {
		return n
	}
	return id
}
