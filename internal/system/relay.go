package system

import (
	"net"
	"net/http"
	"strings"

	thole "github.com/tholehq/thole"
	relays "github.com/tholehq/thole/internal/relay/registry"
)

// openRelay makes the relay of the configuration, nil where there is none. Its tokens
// travel to the address of the page, so that has to be encrypted or of this machine.
func openRelay(o Options, at address, bound net.Addr) (*relays.Registry, error) {
	file := o.Config.Relay.TokensFile
	if file == "" {
		return nil, nil //nolint:nilnil // as documented
	}
	if !at.tls && !bound.(*net.TCPAddr).IP.IsLoopback() {
		return nil, thole.Errorf(thole.CodeForbidden, "relay.tokens_file: refusing to take tokens of a relay unencrypted on %s", bound).
			WithHint("set http.tls_cert and http.tls_key, or http.public_url to the https:// address of a proxy before it")
	}
	tokens, made, err := relays.OpenTokens(file)
	if err != nil {
		return nil, err
	}
	if made {
		o.Log.Info("made the tokens of the relay, with one token", "path", file)
	}
	return relays.New(relays.Config{TokensFile: tokens, URL: o.Config.HTTP.PublicURL, Log: o.Log}), nil
}

// withRelay gives a relay its paths.
func withRelay(api http.Handler, relay *relays.Registry) http.Handler {
	if relay == nil {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == relays.RendezvousPath || strings.HasPrefix(r.URL.Path, relays.EnvironmentPath) {
			relay.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}
