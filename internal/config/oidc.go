package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/sso"
)

// OIDC is the provider of logins of a team server; none without an issuer.
type OIDC struct {
	Issuer       string   `toml:"issuer"`
	ClientID     string   `toml:"client_id"`
	SecretFile   string   `toml:"client_secret_file"`
	Scopes       []string `toml:"scopes"`
	GroupsClaim  string   `toml:"groups_claim"`
	Groups       []string `toml:"groups"` // GROUP=department NAME, GROUP=ROLE, GROUP=ROLE on KIND NAME
	AllowDomains []string `toml:"allowed_domains"`
	AutoCreate   bool     `toml:"auto_create"`
	Label        string   `toml:"label"`
}

// Rules are the groups, read.
func (o OIDC) Rules() (out []identity.GroupRule) {
	for _, text := range o.Groups {
		if r, err := parseGroup(text); err == nil {
			out = append(out, r)
		}
	}
	return out
}

var errGroup = errors.New(`must be "GROUP=department NAME", "GROUP=ROLE" for a role on the platform, or "GROUP=ROLE on KIND NAME"`)

// parseGroup reads one of oidc.groups. Names of groups may have "=" in them, as in LDAP.
func parseGroup(text string) (r identity.GroupRule, err error) {
	at := strings.LastIndex(text, "=")
	if at < 1 {
		return r, fmt.Errorf("entry %q: %w", text, errGroup)
	}
	r.Group = text[:at]
	means, on, scoped := strings.Cut(strings.TrimSpace(text[at+1:]), " on ")
	if name, ok := strings.CutPrefix(means, "department "); ok && !scoped {
		r.Department = strings.TrimSpace(name)
		return r, nil
	}
	r.Role, r.Kind = authz.Role(means), authz.OnPlatform
	if scoped {
		kind, name, _ := strings.Cut(on, " ")
		r.Kind, r.On = authz.Kind(kind), strings.TrimSpace(name)
	}
	if !slices.Contains(authz.Roles(), r.Role) || !r.Role.Grants(r.Kind) || (r.On == "") != (r.Kind == authz.OnPlatform) {
		return r, fmt.Errorf("entry %q, whose role means nothing there: %w", text, errGroup)
	}
	return r, nil
}

func (c *Config) checkOIDC() error {
	o := c.OIDC
	if o.Issuer == "" {
		if o.ClientID != "" || o.SecretFile != "" {
			return c.bad("oidc.issuer", "is needed for the other keys of [oidc]")
		}
		return nil
	}
	switch {
	case sso.CheckURL(o.Issuer) != nil || strings.Contains(o.Issuer, "?"):
		return c.bad("oidc.issuer", "must be the https:// URL of the provider, exactly as it calls itself, not %q", o.Issuer)
	case o.ClientID == "":
		return c.bad("oidc.client_id", "is needed: what the provider calls this server")
	case o.SecretFile != "" && !filepath.IsAbs(o.SecretFile):
		return c.bad("oidc.client_secret_file", "must be an absolute path, not %q", o.SecretFile)
	case !slices.Contains(o.Scopes, "openid"):
		return c.bad("oidc.scopes", "must have openid among them")
	case len(o.Label) > 60:
		return c.bad("oidc.label", "must be at most 60 bytes")
	}
	return c.each("oidc.groups", o.Groups, func(text string) error { _, err := parseGroup(text); return err })
}
