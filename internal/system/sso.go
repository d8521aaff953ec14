package system

import (
	"os"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/sso"
)

// singleSignOn is the provider of logins of a team server, nil without one: the program of one
// user has one login.
func singleSignOn(o Options, page string) *sso.Client {
	c := o.Config.OIDC
	if c.Issuer == "" || o.Role != "serve" {
		return nil
	}
	return sso.New(sso.Config{
		Issuer: c.Issuer, ClientID: c.ClientID, Scopes: c.Scopes, GroupsClaim: c.GroupsClaim, Rules: c.Rules(), Domains: c.AllowDomains, Create: c.AutoCreate, Label: c.Label, Page: page,
		Secret: func() (string, error) { return clientSecret(c.SecretFile) },
	})
}

func clientSecret(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "oidc.client_secret_file: %w", err).WithHint("it holds the secret and nothing else, and the user of the server can read it")
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
