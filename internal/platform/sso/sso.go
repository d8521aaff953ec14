// Package sso logs people in at a provider of logins with OpenID Connect: it builds the
// address that a browser is sent to, checks what the provider answers, and checks what it
// says about logins that are over. It decides who was proven; whose account that is belongs
// to internal/identity, and the login to internal/platform/session.
//
// It refuses tokens of another issuer, audience, key, algorithm or browser, expired ones, and
// endpoints without TLS. It keeps no token: after a login nothing of the provider's is needed.
package sso

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/unguarded"
	"golang.org/x/oauth2"
)

const (
	// skew is how far the clocks of provider and server may be apart.
	skew = time.Minute
	// describedFor is how long the provider's description of itself and its keys are used. A
	// key that is not known is asked for at once; one that was withdrawn is forgotten with it.
	describedFor = time.Hour
	// maxAnswer bounds what is read of one answer of the provider.
	maxAnswer = 1 << 20
	// maxText bounds what a token says of a subject or session.
	maxText = 255
)

// Config makes a Client.
type Config struct {
	Issuer, ClientID string
	// Secret reads the client's secret, "" for a client that has none. It is read for each
	// login, so that another one needs no new start.
	Secret func() (string, error)
	Scopes []string
	// GroupsClaim has the names of the user's groups; Rules say what they give.
	GroupsClaim string
	Rules       []identity.GroupRule
	// Domains are those of the verified addresses that are let in; none: all.
	Domains []string
	// Create adds users who are not known yet.
	Create bool
	// Label is what the login page calls the provider.
	Label string
	// Page is the address of this server, to which the provider sends browsers back.
	Page string
	Now  func() time.Time // time.Now when nil
}

// Client is this server as the provider knows it. Safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client

	mu    sync.Mutex
	known *described // nil: the provider never answered
}

// described is what a provider says about itself.
type described struct {
	*oidc.Provider
	at       time.Time
	verifier *oidc.IDTokenVerifier
	style    oauth2.AuthStyle
	End      string   `json:"end_session_endpoint"`
	Methods  []string `json:"token_endpoint_auth_methods_supported"`
	Named    bool     `json:"authorization_response_iss_parameter_supported"`
}

// New makes a client. It asks the provider nothing before it is needed.
func New(cfg Config) *Client {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Client{cfg: cfg, http: &http.Client{
		Timeout: 10 * time.Second, Transport: bounded{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Label is what the login page calls the provider.
func (c *Client) Label() string { return c.cfg.Label }

// Create reports whether users who are not known yet are added.
func (c *Client) Create() bool { return c.cfg.Create }

// Page is the address of this server, as the provider knows it.
func (c *Client) Page() string { return c.cfg.Page }

// Issuer names the provider.
func (c *Client) Issuer() string { return c.cfg.Issuer }

// provider reads the provider's description. An old one is used when the provider does not
// answer: keys of logins in progress are then still known.
func (c *Client) provider(ctx context.Context) (*described, error) {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	if known != nil && c.cfg.Now().Before(known.at.Add(describedFor)) {
		return known, nil
	}
	fresh, err := c.describe(ctx)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.known = fresh
		return fresh, nil
	}
	if known != nil && c.cfg.Now().Before(known.at.Add(24*describedFor)) {
		return known, nil
	}
	return nil, thole.Errorf(thole.CodeUnavailable, "the provider of logins %s does not answer as one: %w", c.cfg.Issuer, err).WithHint("try again later, or log in with a password or a link")
}

func (c *Client) describe(ctx context.Context) (*described, error) {
	ctx = oidc.ClientContext(ctx, c.http)
	p, err := oidc.NewProvider(ctx, c.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	d := &described{Provider: p, at: c.cfg.Now(), style: oauth2.AuthStyleInHeader}
	if err := p.Claims(d); err != nil {
		return nil, err
	}
	if len(d.Methods) > 0 && !slices.Contains(d.Methods, "client_secret_basic") {
		d.style = oauth2.AuthStyleInParams
	}
	var all struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&all); err != nil {
		return nil, err
	}
	for what, at := range map[string]string{"authorization": p.Endpoint().AuthURL, "token": p.Endpoint().TokenURL, "keys": all.Keys, "user": p.UserInfoEndpoint(), "logout": d.End} {
		if at == "" && (what == "user" || what == "logout") {
			continue
		}
		if err := CheckURL(at); err != nil {
			return nil, fmt.Errorf("its %s endpoint %w", what, err)
		}
	}
	d.verifier = p.VerifierContext(ctx, &oidc.Config{
		ClientID: c.cfg.ClientID, Now: func() time.Time { return c.cfg.Now().Add(-skew) },
		SkipClientIDCheck: unguarded.Build, SkipExpiryCheck: unguarded.Build, SkipIssuerCheck: unguarded.Build, InsecureSkipSignatureCheck: unguarded.Build,
	})
	return d, nil
}

// CheckURL refuses an address of a provider that others could read or answer: only https, and
// http on this machine.
func CheckURL(at string) error {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("is no URL")
	}
	host := u.Hostname()
	if u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1" || host == "::1") {
		return nil
	}
	return errors.New("is not https")
}

func (c *Client) oauth(d *described) (*oauth2.Config, error) {
	secret, err := c.cfg.Secret()
	if err != nil {
		return nil, err
	}
	at := d.Endpoint()
	if at.AuthStyle = d.style; secret == "" {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{ClientID: c.cfg.ClientID, ClientSecret: secret, Endpoint: at, RedirectURL: c.cfg.Page + "/auth/oidc/callback", Scopes: c.cfg.Scopes}, nil
}

// URL is where a browser logs in.
func (c *Client) URL(ctx context.Context, f session.Flow) (string, error) {
	d, err := c.provider(ctx)
	if err != nil {
		return "", err
	}
	o, err := c.oauth(d)
	if err != nil {
		return "", err
	}
	return o.AuthCodeURL(f.State(), oidc.Nonce(f.Nonce()), oauth2.S256ChallengeOption(f.Verifier())), nil
}

// EndURL is where a person ends the login at the provider too; "": the provider has none, or
// was not asked yet.
func (c *Client) EndURL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || c.known.End == "" {
		return ""
	}
	u, err := url.Parse(c.known.End)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", c.cfg.ClientID)
	q.Set("post_logout_redirect_uri", c.cfg.Page+"/auth/account")
	u.RawQuery = q.Encode()
	return u.String()
}

// Rules are those of the groups that a user is in.
func (c *Client) Rules(groups []string) (out []identity.GroupRule) {
	for _, r := range c.cfg.Rules {
		if slices.Contains(groups, r.Group) {
			out = append(out, r)
		}
	}
	return out
}

// admitted refuses addresses of other domains.
func (c *Client) admitted(i identity.Identity) error {
	if len(c.cfg.Domains) == 0 {
		return nil
	}
	_, domain, _ := strings.Cut(i.Email, "@")
	if i.Verified && slices.ContainsFunc(c.cfg.Domains, func(d string) bool { return strings.EqualFold(d, domain) }) || unguarded.Build {
		return nil
	}
	return thole.Errorf(thole.CodeForbidden, "only verified addresses of %s are let in", strings.Join(c.cfg.Domains, ", ")).WithHint("ask who runs this server")
}
