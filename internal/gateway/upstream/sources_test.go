package upstream_test

import (
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/vault"
)

// Sources say what Describe does, and looking is not a use of a secret.
func TestSources(t *testing.T) {
	m := newMachine(t)
	v := newVault(t)
	m.cfg.Vault = v
	r := m.routes()
	origins := func(cli string, user thole.UserID) []string {
		t.Helper()
		who := thole.DefaultOwner
		who.User = user
		got, err := r.Sources(t.Context(), who, cli)
		if err != nil && (thole.CodeOf(err) != thole.CodeNotFound || thole.HintOf(err) == "") {
			t.Fatal(err)
		}
		var out []string
		for _, s := range got {
			out = append(out, s.Upstream+": "+s.Origin)
		}
		described, _ := r.Describe(t.Context(), who, cli)
		for _, d := range described {
			if !slices.ContainsFunc(out, func(o string) bool { return strings.HasSuffix(o, ": "+d.Origin) }) {
				t.Errorf("%s of %s: %q is described and not in %q", cli, user, d.Origin, out)
			}
		}
		return out
	}
	want := func(cli string, user thole.UserID, want ...string) {
		t.Helper()
		if got := origins(cli, user); !slices.Equal(got, want) {
			t.Errorf("%s of %s: %q, want %q", cli, user, got, want)
		}
	}
	want("claude", thole.LocalUser)
	m.env["ANTHROPIC_API_KEY"] = "sk-machine"
	if got := origins("claude", thole.LocalUser); len(got) != 1 || !strings.Contains(got[0], "ANTHROPIC_API_KEY") || strings.Contains(got[0], "sk-machine") {
		t.Errorf("from the environment: %q", got)
	}
	want("claude", "another")
	item := create(t, v, vault.OfUser, thole.LocalUser, "claude", "sk-own")
	create(t, v, vault.OfPlatform, thole.LocalUser, "anthropic", "sk-all")
	got, err := r.Sources(t.Context(), thole.DefaultOwner, "claude")
	if err != nil || len(got) != 1 || got[0].Item != string(item.ID) {
		t.Errorf("%+v, %v", got, err)
	}
	if now, err := v.Item(t.Context(), thole.LocalActor, item.ID); err != nil || !now.Used.IsZero() {
		t.Errorf("looking counts as a use: %+v, %v", now, err)
	}
	want("claude", thole.LocalUser, "claude: vault item user-claude")
	want("claude", "another", "anthropic: vault item platform-anthropic")
}
