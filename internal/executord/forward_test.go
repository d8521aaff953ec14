package executord

import (
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// Endpoints come from what the server grants, in whatever form it writes them.
func TestEndpointsOfAGrant(t *testing.T) {
	ports, remote := endpoints(provider.Grant{
		Env: map[string]string{"A_BASE_URL": "http://127.0.0.1:4000/v1", "B": `{"url":"http://LOCALHOST:4001"}`, "C": "https://models.example.com/v1", "KEY": "sk-127.0.0.1:22"},
		Config: map[string][]byte{
			"config.toml": []byte("base_url = \"http://[::1]:4002/v1\"\nother = \"http://10.0.0.5:8000\"\nagain = \"http://127.0.0.1:4000\"\nbad = \"http://127.0.0.1:99999\""),
		},
		Files: map[string][]byte{"auth.json": []byte("http://127.0.0.1:22")},
	}, "test")
	slices.Sort(remote)
	if !slices.Equal(ports, []uint16{4000, 4001, 4002}) {
		t.Errorf("ports %v", ports)
	}
	if !slices.Equal(remote, []string{"10.0.0.5:8000", "models.example.com:443"}) {
		t.Errorf("elsewhere %v", remote)
	}
}
