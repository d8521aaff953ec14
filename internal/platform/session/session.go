// Package session proves who speaks HTTP to us: a one-time login link becomes an
// opaque session cookie, and scripts carry API tokens. It owns the secrets'
// lives (made here, stored only as sums, used up, renewed, revoked) and turns a
// request into a thole.Actor.
//
// It knows no roles and refuses nothing but the unproven: what an actor may do
// is decided after it. Passwords and single sign-on would be further ways into
// the same session.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
)

const (
	// LoginLife is how long a printed link works.
	LoginLife = 10 * time.Minute
	// Life is how long a session lasts after it was last seen.
	Life = 30 * 24 * time.Hour
	// seenEvery bounds how often being seen is written down.
	seenEvery = time.Hour
	// maxTokens bounds the API tokens of one user.
	maxTokens = 100
	// tokenPrefix lets secret scanners find a leaked token.
	tokenPrefix = "thole_"
)

// Store keeps the rows. Hashes are sums of secrets; a row that is not there, or
// whose user is not active, is found=false. Every method is one transaction.
type Store interface {
	AddLogin(ctx context.Context, hash string, user thole.UserID, expires time.Time) error
	// Redeem removes an unexpired login code and adds the session for its user. A
	// code works once: of two callers one gets found=false.
	Redeem(ctx context.Context, loginHash string, s Session) (got Session, found bool, err error)
	AddSession(ctx context.Context, s Session) error
	Session(ctx context.Context, hash string) (s Session, found bool, err error)
	RenewSession(ctx context.Context, hash string, seen, expires time.Time) error
	RemoveSession(ctx context.Context, hash string) error

	// AddToken refuses with thole.CodeOverloaded when the user has limit tokens.
	AddToken(ctx context.Context, t Token, limit int) error
	Token(ctx context.Context, hash string) (t Token, found bool, err error)
	Tokens(ctx context.Context, user thole.UserID) ([]Token, error)
	SeeToken(ctx context.Context, hash string, seen time.Time) error
	RemoveToken(ctx context.Context, user thole.UserID, id string) (found bool, err error)

	// Sweep removes what expired before now.
	Sweep(ctx context.Context, now time.Time) error
}

// User is who a secret belongs to.
type User struct {
	ID    thole.UserID
	Login string
	Name  string
}

// Session is one logged-in browser.
type Session struct {
	Hash    string
	User    User
	Client  string
	Created time.Time
	Seen    time.Time
	Expires time.Time
}

// Token is an API token; its secret is not in it.
type Token struct {
	Hash    string
	ID      string
	User    User
	Name    string
	Created time.Time
	Seen    time.Time
	Expires time.Time // zero: never
}

// Manager makes, checks and ends sessions and tokens. Safe for concurrent use.
type Manager struct {
	store Store
	now   func() time.Time
}

// New makes a manager; now is the clock, time.Now when nil.
func New(store Store, now func() time.Time) *Manager {
	if now == nil {
		now = time.Now
	}
	return &Manager{store: store, now: now}
}

func secret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// sum is how a secret is stored and looked up. Looking up by the sum leaks no
// timing of the secret itself.
func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// NewLogin makes a code for a one-time link.
func (m *Manager) NewLogin(ctx context.Context, user thole.UserID) (code string, err error) {
	code = secret()
	if err := m.store.AddLogin(ctx, sum(code), user, m.now().Add(LoginLife)); err != nil {
		return "", thole.Errorf(thole.CodeOf(err), "make login: %w", err)
	}
	return code, nil
}

// Redeem uses a code up and starts a session. The returned secret belongs into
// the cookie.
func (m *Manager) Redeem(ctx context.Context, code, client string) (string, Session, error) {
	value, s := m.fresh(client)
	s, found, err := m.store.Redeem(ctx, sum(code), s)
	if err != nil {
		return "", Session{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	if !found {
		return "", Session{}, thole.Errorf(thole.CodeUnauthorized, "this login link was used or is too old").
			WithHint("`thole login` prints a new one")
	}
	return value, s, nil
}

// Exchange starts a session for the holder of an API token.
func (m *Manager) Exchange(ctx context.Context, token, client string) (string, Session, error) {
	t, err := m.token(ctx, token)
	if err != nil {
		return "", Session{}, err
	}
	value, s := m.fresh(client)
	s.User = t.User
	if !t.Expires.IsZero() { // shorter than Life is never renewed: see Resolve
		s.Expires = s.Expires.Add(-time.Second)
		if t.Expires.Before(s.Expires) {
			s.Expires = t.Expires
		}
	}
	if err := m.store.AddSession(ctx, s); err != nil {
		return "", Session{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	return value, s, nil
}

func (m *Manager) fresh(client string) (string, Session) {
	value, now := secret(), m.now()
	if len(client) > 200 {
		client = client[:200]
	}
	client = strings.ToValidUTF8(strings.ReplaceAll(client, "\x00", ""), "")
	return value, Session{Hash: sum(value), Client: client, Created: now, Seen: now, Expires: now.Add(Life)}
}

func errUnproven() error {
	return thole.Errorf(thole.CodeUnauthorized, "not logged in").WithHint("open the link that `thole up` printed, or send an API token")
}

// Resolve finds the session of a cookie's value and keeps it alive.
func (m *Manager) Resolve(ctx context.Context, value string) (Session, error) {
	hash, now := sum(value), m.now()
	s, found, err := m.store.Session(ctx, hash)
	if err != nil {
		return Session{}, thole.Errorf(thole.CodeOf(err), "read session: %w", err)
	}
	if !found || !now.Before(s.Expires) {
		return Session{}, errUnproven()
	}
	if now.Sub(s.Seen) >= seenEvery {
		if s.Expires.Sub(s.Seen) >= Life { // one that was shortened when it began keeps its end
			s.Expires = now.Add(Life)
		}
		s.Seen = now
		if err := m.store.RenewSession(ctx, hash, now, s.Expires); err != nil {
			return Session{}, thole.Errorf(thole.CodeOf(err), "renew session: %w", err)
		}
	}
	return s, nil
}

// End logs a cookie's session out. Ending one that is not there is fine.
func (m *Manager) End(ctx context.Context, value string) error {
	if err := m.store.RemoveSession(ctx, sum(value)); err != nil {
		return thole.Errorf(thole.CodeOf(err), "log out: %w", err)
	}
	return nil
}

// Sweep removes what expired.
func (m *Manager) Sweep(ctx context.Context) error { return m.store.Sweep(ctx, m.now()) }
