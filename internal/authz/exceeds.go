package authz

import thole "github.com/tholehq/thole"

// Exceeds names a right that a grant gives and the subject does not have there; "": there is
// none. place is what the grant is on: an app, a project in its app, or nothing at all.
func Exceeds(s Subject, g Grant, place Resource) Action { return builtin().exceeds(s, g, place) }

// anybody owns a thing to which no grant on a user and no department reaches.
const anybody thole.UserID = "?"

func (t *table) exceeds(s Subject, g Grant, place Resource) Action {
	for _, rel := range relationsOf(g.Kind) {
		on := []Resource{place}
		switch rel {
		case AppUser, ProjectUser:
			on[0].Owner = anybody
		case OfUser:
			on = nil
			for _, u := range append([]thole.UserID{anybody}, g.Users...) {
				on = append(on, Resource{Owner: u})
			}
		case Self, Away, Project, App, Everything:
		}
		for _, a := range Actions() {
			if !t.allows(g.Role, a, rel) {
				continue
			}
			for _, r := range on {
				if ok, _ := t.can(s, a, r); !ok {
					return a
				}
			}
		}
	}
	return ""
}
