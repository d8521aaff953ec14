package doctor

import (
	"strings"
)

// Usable says whether any agent can run a turn: it is installed and has a credential. One
// is enough, so each agent alone is optional and this is what is needed.
func Usable(agents, credentials []Finding) Finding {
	f := Finding{Part: "agents", Needed: true, Disables: "turns: there is nobody to do the work"}
	paid := map[string]bool{}
	for _, c := range credentials {
		if name, ok := strings.CutPrefix(c.Part, "credential "); ok && c.OK {
			paid[name] = true
		}
	}
	var ready, installed, installs []string
	for _, a := range agents {
		name := strings.TrimPrefix(a.Part, "agent ")
		switch {
		case a.OK && paid[name]:
			ready = append(ready, name)
		case a.OK:
			installed = append(installed, name)
		case a.Fix != "":
			installs = append(installs, a.Fix)
		}
	}
	switch {
	case len(ready) > 0:
		f.OK, f.Found = true, "ready: "+strings.Join(ready, ", ")
	case len(installed) > 0:
		f.Problem, f.Fix = "installed, but without a login or a key: "+strings.Join(installed, ", "), "thole provider login "+installed[0]
	default:
		f.Problem, f.Fix = "no agent is installed", strings.Join(append(installs, "thole up --demo needs none"), "; or ")
	}
	return f
}
