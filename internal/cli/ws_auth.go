package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/transport"
)

// wsAuth adds the flags that say who may connect to a listener, and returns what
// makes the proof of them.
func wsAuth(cmd *cobra.Command) func() (*transport.Auth, error) {
	var o transport.AuthOptions
	var skew int
	f := cmd.Flags()
	f.StringVar(&o.Mode, "ws-auth", "", "none, capability-token or signed-bearer-token")
	f.StringVar(&o.TokenFile, "ws-token-file", "", "file with the capability token")
	f.StringVar(&o.TokenSHA256, "ws-token-sha256", "", "SHA-256 of the capability token, in hex")
	f.StringVar(&o.SecretFile, "ws-shared-secret-file", "", "file with the secret that signs bearer tokens")
	f.StringVar(&o.Issuer, "ws-issuer", "", "issuer that tokens must name")
	f.StringVar(&o.Audience, "ws-audience", "", "audience that tokens must name")
	f.IntVar(&skew, "ws-max-clock-skew-seconds", 0, "tolerated clock difference (default 30)")
	return func() (*transport.Auth, error) {
		o.MaxClockSkew = time.Duration(skew) * time.Second
		return transport.NewAuth(o)
	}
}
