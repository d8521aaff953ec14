// Package authztest draws random worlds of users, grants and things for property tests.
package authztest

import (
	"iter"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"pgregory.net/rapid"
)

// The things of the worlds. The default app and project are everybody's.
var (
	Users = []thole.UserID{"00000000-0000-7000-8000-0000000000a1", "00000000-0000-7000-8000-0000000000a2", "00000000-0000-7000-8000-0000000000a3"}
	// Places are projects with their apps.
	Places = []thole.Owner{
		{App: thole.DefaultApp, Project: thole.DefaultProject},
		{App: thole.DefaultApp, Project: "00000000-0000-7000-8000-0000000000b1"},
		{App: "00000000-0000-7000-8000-0000000000c1", Project: "00000000-0000-7000-8000-0000000000b2"},
		{App: "00000000-0000-7000-8000-0000000000c1", Project: "00000000-0000-7000-8000-0000000000b3"},
	}
)

// Owners are all that a thing can have.
func Owners() iter.Seq[thole.Owner] {
	return func(yield func(thole.Owner) bool) {
		for _, u := range Users {
			for _, o := range Places {
				if o.User = u; !yield(o) {
					return
				}
			}
		}
	}
}

// Owner draws one.
func Owner(t *rapid.T) thole.Owner {
	o := rapid.SampledFrom(Places).Draw(t, "place")
	o.User = rapid.SampledFrom(Users).Draw(t, "owner")
	return o
}

// Grant draws one, also one that means nothing.
func Grant(t *rapid.T) authz.Grant {
	g := authz.Grant{Role: rapid.SampledFrom(authz.Roles()).Draw(t, "role"), Kind: rapid.SampledFrom(authz.Kinds()).Draw(t, "kind")}
	o := Owner(t)
	switch g.Kind {
	case authz.OnPlatform:
	case authz.OnApp:
		g.ID = string(o.App)
	case authz.OnProject:
		g.ID = string(o.Project)
	case authz.OnUser:
		g.ID = string(o.User)
	case authz.OnDepartment:
		g.ID, g.Users = "department", rapid.SliceOfDistinct(rapid.SampledFrom(Users), rapid.ID[thole.UserID]).Draw(t, "department")
	}
	return g
}

// Subject draws the first user, seldom disabled, with grants and perhaps a token.
func Subject(t *rapid.T) authz.Subject {
	return authz.Subject{
		User: Users[0], Active: rapid.IntRange(0, 9).Draw(t, "active") > 0, Grants: rapid.SliceOfN(rapid.Custom(Grant), 0, 5).Draw(t, "grants"),
		Token: rapid.SampledFrom([]string{"", "", "", "jobs", "read", "act", "admin"}).Draw(t, "token"),
	}
}
