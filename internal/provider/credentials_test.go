package provider_test

import (
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// A grant names the gateway's place without knowing it; one that does not go through
// the gateway is left as it is.
func TestTheGatewaysPlace(t *testing.T) {
	text := "http://" + provider.GatewayPlace + "/codex/v1 and http://" + provider.GatewayPlace + "/claude"
	g := provider.Grant{Env: map[string]string{"A": text}, Files: map[string][]byte{"f": []byte(text)}, Config: map[string][]byte{"c": []byte(text)}}
	if at := g.At("127.0.0.1:1"); !at.Equal(g) {
		t.Errorf("without the gateway: %+v", at)
	}
	g.Gateway = true
	at := g.At("127.0.0.1:3129")
	want := "http://127.0.0.1:3129/codex/v1 and http://127.0.0.1:3129/claude"
	if at.Env["A"] != want || string(at.Files["f"]) != want || string(at.Config["c"]) != want {
		t.Errorf("filled in: %+v", at)
	}
	if g.Env["A"] != text || string(g.Files["f"]) != text || string(g.Config["c"]) != text {
		t.Errorf("the grant itself changed: %+v", g)
	}
	if at.Equal(g) || !g.At("127.0.0.1:3129").Equal(at) {
		t.Error("grants are compared by what they give")
	}
}
