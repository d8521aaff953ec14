package appserver

import (
	"context"
	"testing"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/protocol/app"
)

// What a model's service can do is that of the agent of new threads.
func TestCapabilitiesOfTheModelProvider(t *testing.T) {
	for name, search := range map[string]bool{"codex": true, "claude": true, "opencode": false, "test": false} {
		cfg := &Config{DefaultProvider: name, Providers: func() []provider.Info { return nil }}
		s := &Server{cfg: *cfg, catalog: &catalog{cfg: cfg}}
		s.register()
		a, err := s.methods["modelProvider/capabilities/read"].run(context.Background(), &conn{}, &app.Empty{})
		if want := (app.ModelProviderCapabilities{WebSearch: search}); err != nil || a.result != want {
			t.Errorf("%s: %+v, %v", name, a.result, err)
		}
	}
}
