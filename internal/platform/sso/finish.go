package sso

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/unguarded"
	"golang.org/x/oauth2"
)

// Answer is what a provider sent a browser back with.
type Answer struct{ Code, Issuer string }

// Proven is whom a provider proved.
type Proven struct {
	identity.Identity
	Groups []string
	SID    string // what the provider calls its session; "": it says nothing of it
}

// claims are what a token or the provider's user endpoint says of a user.
type claims struct {
	Login, Name, Email, SID, Party string
	Verified                       bool
	groups                         []string
}

func (c *Client) read(from interface{ Claims(any) error }) (out claims, err error) {
	all := map[string]json.RawMessage{}
	if err := from.Claims(&all); err != nil {
		return out, err
	}
	for name, into := range map[string]*string{"preferred_username": &out.Login, "name": &out.Name, "email": &out.Email, "sid": &out.SID, "azp": &out.Party} {
		if raw, ok := all[name]; ok && strictjson.Unmarshal(raw, into) != nil {
			return out, fmt.Errorf("claim %s is no text", name)
		}
	}
	proven := string(all["email_verified"])
	out.Verified = proven == `true` || proven == `"true"` // as some write it
	if raw, ok := all[c.cfg.GroupsClaim]; ok && strictjson.Unmarshal(raw, &out.groups) != nil {
		var one string
		if strictjson.Unmarshal(raw, &one) != nil {
			return out, fmt.Errorf("claim %s is no list of names", c.cfg.GroupsClaim)
		}
		out.groups = []string{one}
	}
	return out, nil
}

func (c *Client) refused(err error) error {
	return thole.Errorf(thole.CodeUnauthorized, "the login of %s is refused: %w", c.cfg.Issuer, err).WithHint("begin it again from the login page; if that does not help, ask who runs this server")
}

// Finish changes the code of an answer for the tokens of a flow and checks them.
func (c *Client) Finish(ctx context.Context, f session.Flow, a Answer) (Proven, error) {
	d, err := c.provider(ctx)
	if err != nil {
		return Proven{}, err
	}
	if (d.Named || a.Issuer != "") && a.Issuer != c.cfg.Issuer && !unguarded.Build { // RFC 9207: the answer of another provider
		return Proven{}, c.refused(fmt.Errorf("the answer is of %q", a.Issuer))
	}
	o, err := c.oauth(d)
	if err != nil {
		return Proven{}, err
	}
	ctx = oidc.ClientContext(ctx, c.http)
	tokens, err := o.Exchange(ctx, a.Code, oauth2.VerifierOption(f.Verifier()))
	if said := (*oauth2.RetrieveError)(nil); errors.As(err, &said) && said.Response.StatusCode < 500 {
		return Proven{}, c.refused(fmt.Errorf("the code was not accepted: %s", said.ErrorCode))
	}
	if err != nil {
		return Proven{}, thole.Errorf(thole.CodeUnavailable, "the provider of logins %s does not answer: %w", c.cfg.Issuer, err).WithHint("try again later, or log in with a password or a link")
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return Proven{}, c.refused(err)
	}
	said, err := c.read(id)
	if err != nil {
		return Proven{}, c.refused(err)
	}
	if err := c.check(f, id, said); err != nil && !unguarded.Build {
		return Proven{}, c.refused(err)
	}
	if d.UserInfoEndpoint() != "" && (said.Email == "" || said.groups == nil) {
		more, err := d.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil {
			return Proven{}, c.refused(fmt.Errorf("it does not say who the user is: %w", err))
		}
		if more.Subject != id.Subject && !unguarded.Build {
			return Proven{}, c.refused(errors.New("its user endpoint names another user"))
		}
		told, err := c.read(more)
		if err != nil {
			return Proven{}, c.refused(err)
		}
		said = said.or(told)
	}
	p := Proven{Groups: said.groups, SID: said.SID, Identity: identity.Identity{Issuer: c.cfg.Issuer, Subject: id.Subject, Login: said.Login, Name: said.Name, Email: said.Email, Verified: said.Verified}}
	return p, c.admitted(p.Identity)
}

// check is what a verifier of tokens leaves to its caller.
func (c *Client) check(f session.Flow, id *oidc.IDToken, said claims) error {
	switch {
	case id.Nonce != f.Nonce():
		return errors.New("its token is of another login")
	case id.Subject == "" || len(id.Subject) > maxText || len(said.SID) > maxText:
		return errors.New("its token names no user")
	case (len(id.Audience) > 1 || said.Party != "") && said.Party != c.cfg.ClientID:
		return errors.New("its token is for another program")
	case id.IssuedAt.After(c.cfg.Now().Add(skew)):
		return errors.New("its token is of the future: compare the clocks")
	}
	return nil
}

// or fills what a token does not say.
func (s claims) or(more claims) claims {
	if s.Email == "" {
		s.Email, s.Verified = more.Email, more.Verified
	}
	if s.groups == nil {
		s.groups = more.groups
	}
	if s.Login == "" {
		s.Login = more.Login
	}
	if s.Name == "" {
		s.Name = more.Name
	}
	return s
}

// Ended checks a provider's message that logins are over.
func (c *Client) Ended(ctx context.Context, raw string) (session.Logout, error) {
	d, err := c.provider(ctx)
	if err != nil {
		return session.Logout{}, err
	}
	t, err := d.verifier.VerifyLogout(oidc.ClientContext(ctx, c.http), raw)
	now := c.cfg.Now()
	switch {
	case err != nil:
		return session.Logout{}, c.refused(err)
	case unguarded.Build:
	case t.IssuedAt.After(now.Add(skew)) || t.Expiry.After(now.Add(24*time.Hour)):
		return session.Logout{}, c.refused(errors.New("its token is of the future: compare the clocks"))
	case len(t.Subject) > maxText || len(t.SessionID) > maxText:
		return session.Logout{}, c.refused(errors.New("its token names no user"))
	}
	return session.Logout{Issuer: c.cfg.Issuer, Subject: t.Subject, SID: t.SessionID, ID: t.TokenID, Expires: t.Expiry.Add(2 * skew)}, nil
}

// bounded reads no more of an answer than maxAnswer.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}
