package plugin_test

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/plugin"
)

// Derived ids name one thing each: not even the same words in another place, or cut in
// another way, give the same id, and an instance's lease is never a delivery's.
func TestDerivedIDsAreApart(t *testing.T) {
	in := plugin.Instance{User: "u", Plugin: "p", ID: "t"}
	ids := map[string]string{}
	for name, id := range map[string]string{
		"instance lease":          plugin.InstanceLease(&in, "e", "t"),
		"owned lease":             plugin.OwnedLease("u", "p", "t", "k"),
		"owned session":           string(plugin.OwnedSession("u", "p", "t", "k")),
		"job":                     string(plugin.Job("u", "p", "k")),
		"job of another plugin":   string(plugin.Job("u", "pk", "")),
		"job of another user":     string(plugin.Job("up", "", "k")),
		"owned, another thread":   plugin.OwnedLease("u", "p", "tk", ""),
		"owned, cut differently":  plugin.OwnedLease("u", "pt", "", "k"),
		"session, another plugin": string(plugin.OwnedSession("u", "q", "t", "k")),
	} {
		if !thole.ValidUUID(id) {
			t.Errorf("%s: %q is no UUID", name, id)
		}
		if other := ids[id]; other != "" {
			t.Errorf("%s and %s are both %s", name, other, id)
		}
		ids[id] = name
	}
}
