package doctor

import (
	"strings"
	"testing"
)

// One agent that is installed and logged in is what is needed; the others are optional.
func TestUsable(t *testing.T) {
	agent := func(name string, ok bool) Finding {
		return Finding{Part: "agent " + name, OK: ok, Fix: "install " + name}
	}
	login := func(name string, ok bool) Finding { return Finding{Part: "credential " + name, OK: ok} }
	for _, c := range []struct {
		agents, logins []Finding
		ok             bool
		says           string
	}{
		{[]Finding{agent("a", true), agent("b", false)}, []Finding{login("a", true), login("b", false)}, true, "ready: a"},
		{[]Finding{agent("a", true), agent("b", false)}, []Finding{login("a", false), login("b", true)}, false, "thole provider login a"},
		{[]Finding{agent("a", false), agent("b", false)}, nil, false, "install a; or install b; or thole up --demo"},
	} {
		f := Usable(c.agents, c.logins)
		if f.OK != c.ok || !f.Needed || !strings.Contains(f.Found+f.Problem+f.Fix, c.says) {
			t.Errorf("%+v, want %q", f, c.says)
		}
	}
}
