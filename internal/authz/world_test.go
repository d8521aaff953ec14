package authz_test

import (
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/authz/authztest"
	"pgregory.net/rapid"
)

// A grant more never takes a right away, and one less never gives one.
func TestGrantsOnlyAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, more := authztest.Subject(t), authztest.Grant(t)
		with := s
		with.Grants = slices.Insert(slices.Clone(s.Grants), rapid.IntRange(0, len(s.Grants)).Draw(t, "at"), more)
		thing := authz.Of(authztest.Owner(t))
		for _, a := range authz.Actions() {
			before, why := authz.Can(s, a, thing)
			if after, _ := authz.Can(with, a, thing); before && !after {
				t.Fatalf("%s was allowed (%s) and is not after %+v", a, why, more)
			}
			for o := range authztest.Owners() {
				if authz.ScopeOf(s, a).Sees(o) && !authz.ScopeOf(with, a).Sees(o) {
					t.Fatalf("the scope of %s lost %+v after %+v", a, o, more)
				}
			}
		}
	})
}

// A scope has what Can allows, thing by thing. A thing that moves to another project is
// decided again.
func TestScopeIsCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := authztest.Subject(t)
		for _, a := range authz.Actions() {
			scope := authz.ScopeOf(s, a)
			for o := range authztest.Owners() {
				want, why := authz.Can(s, a, authz.Of(o))
				if got := scope.Sees(o); got != want {
					t.Fatalf("%s of %+v: the scope says %v, Can %v (%s)\n%+v", a, o, got, want, why, s)
				}
				mine := scope.Mine(thole.Actor{User: s.User, Via: "cookie"})
				if got := mine.Sees(o); got && (o.User != s.User || !want) {
					t.Fatalf("%s: %+v is not the user's own to %s", a, o, a)
				}
			}
		}
	})
}
