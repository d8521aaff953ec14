// Package session proves who speaks HTTP to us. A one-time code becomes a browser's
// login, which has two secrets: a cookie, which browsers send to every port of the
// host, and a proof, which only scripts of our own origin can read; neither opens
// anything alone. Scripts carry API tokens. The package owns the secrets' lives:
// made here, stored only as sums, used up, renewed, revoked. What was made with a
// login or a token ends with it.
//
// It knows no roles and refuses nothing but the unproven: what an actor may do
// is decided after it. Who was proven by a password or elsewhere gets the same
// session (Begin).
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

const (
	// LoginLife is how long a printed link works.
	LoginLife = 10 * time.Minute
	// IdleLife is how long a login lasts after it was last used.
	IdleLife = 14 * 24 * time.Hour
	// Life is how long a login lasts at most.
	Life = 90 * 24 * time.Hour
	// StepUpLife is how long after a login by link tokens can be made with it.
	StepUpLife = 10 * time.Minute
	// TokenLife is how long a token lasts unless its maker says otherwise.
	TokenLife = 90 * 24 * time.Hour
	// seenEvery bounds how often being seen is written down.
	seenEvery = time.Hour
	// maxTokens bounds the API tokens of one user.
	maxTokens = 100
	// tokenPrefix lets secret scanners find a leaked token.
	tokenPrefix = "thole_"
)

// Store keeps the rows. Hashes are sums of secrets; a row that is not there, whose
// user is not active, or one of whose ancestors ended before now, is found=false.
// Every method is one transaction.
type Store interface {
	AddLogin(ctx context.Context, hash string, user thole.UserID, expires time.Time) error
	// Redeem removes an unexpired login code and adds the session for its user. A
	// code works once: of two callers one gets found=false.
	Redeem(ctx context.Context, loginHash string, s Session) (got Session, found bool, err error)
	// UseCode removes an unexpired login code of the user; used=false: there is none.
	UseCode(ctx context.Context, hash string, user thole.UserID, now time.Time) (used bool, err error)
	// AddSession refuses with thole.CodeUnauthorized when the parent ended or the user is
	// not active.
	AddSession(ctx context.Context, s Session) error
	Session(ctx context.Context, hash string, now time.Time) (s Session, found bool, err error)
	Sessions(ctx context.Context, user thole.UserID) ([]Session, error)
	RenewSession(ctx context.Context, hash string, seen, expires time.Time) error

	// AddToken refuses with thole.CodeOverloaded when the user has limit tokens, and
	// with thole.CodeUnauthorized when the parent ended or the user is not active. A code is used up with it, and
	// refused with thole.CodeUnauthorized when it is not there or another user's.
	AddToken(ctx context.Context, t Token, limit int, code string) error
	Token(ctx context.Context, hash string, now time.Time) (t Token, found bool, err error)
	Tokens(ctx context.Context, user thole.UserID) ([]Token, error)
	SeeToken(ctx context.Context, hash string, seen time.Time) error

	// EndSession and EndToken remove one of the user's by its id, with everything
	// that was made with it; ended has all their ids, none when there is no such row.
	EndSession(ctx context.Context, user thole.UserID, id string) (ended []string, err error)
	EndToken(ctx context.Context, user thole.UserID, id string) (ended []string, err error)

	// AddShare refuses with thole.CodeOverloaded when the user has limit share links, and with
	// thole.CodeNotFound for a thread that is not the user's.
	AddShare(ctx context.Context, s Share, limit int) error
	Share(ctx context.Context, hash string, now time.Time) (s Share, found bool, err error)
	// Shares lists those that work, of one thread unless that is "".
	Shares(ctx context.Context, user thole.UserID, thread thole.ThreadID, now time.Time) ([]Share, error)
	SeeShare(ctx context.Context, hash string, seen time.Time) error
	EndShare(ctx context.Context, user thole.UserID, id string) (ended []string, err error)

	// Spend records the sum of a proof that works once, until it expires; fresh=false: it was
	// recorded before.
	Spend(ctx context.Context, hash string, expires time.Time) (fresh bool, err error)
	// EndIssued spends the message and removes the logins that its provider proved, of the
	// session or the subject that it names, with everything that was made with them.
	EndIssued(ctx context.Context, hash string, l Logout) (fresh bool, ended []string, err error)

	// AddDevice refuses with thole.CodeOverloaded when limit programs wait, or ofAddress from
	// its address.
	AddDevice(ctx context.Context, d Device, limit, ofAddress int) error
	Device(ctx context.Context, hash string, now time.Time) (d Device, found bool, err error)
	// DeviceState finds a program by the sum of its token.
	DeviceState(ctx context.Context, token string, now time.Time) (waits, confirmed bool, err error)
	RefuseDevice(ctx context.Context, hash string) error
	// ConfirmDevice uses the code up and adds the token, as AddToken does. Of two callers one
	// gets found=false.
	ConfirmDevice(ctx context.Context, hash string, t Token, limit int) (found bool, err error)

	// Sweep removes what expired before now, with everything that was made with it.
	Sweep(ctx context.Context, now time.Time) (ended []string, err error)
}

// User is who a secret belongs to.
type User struct {
	ID    thole.UserID
	Login string
	Name  string
}

// Session is one logged-in browser. Its secrets are not in it.
type Session struct {
	Hash    string // of the cookie
	Proof   string // sum of the second secret
	ID      string
	User    User
	Scope   Scope
	Parent  string // id of the token it was exchanged for; "": a code or a password
	With    string // what proved its user: link, token, password, provider; only when it begins
	Issuer  string // the provider that proved its user; "": none did
	SID     string // what the provider calls its own session
	Client  string
	Created time.Time
	Seen    time.Time
	Expires time.Time // unless it is used before
	Ends    time.Time // however often it is used
}

// Token is an API token; its secret is not in it.
type Token struct {
	Hash    string
	ID      string
	User    User
	Name    string
	Scope   Scope
	Parent  string // id of the login or token it was made with; "": the home's socket
	Created time.Time
	Seen    time.Time
	Expires time.Time // zero: never
}

// Manager makes, checks and ends sessions and tokens. Safe for concurrent use.
type Manager struct {
	store Store
	now   func() time.Time
	held  holders
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

// Secrets are the two of a browser's login: the cookie's value, and the proof that
// its page keeps where only its own origin can read.
type Secrets struct{ Cookie, Proof string }

// Redeem uses a code up and starts a session.
func (m *Manager) Redeem(ctx context.Context, code, client string) (Secrets, Session, error) {
	secrets, s := m.fresh(client, ScopeAdmin)
	s, found, err := m.store.Redeem(ctx, sum(code), s)
	if err != nil {
		return Secrets{}, Session{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	if !found {
		return Secrets{}, Session{}, ErrLinkUsed()
	}
	return secrets, s, nil
}

// ErrLinkUsed refuses a code that works no more, or never did.
func ErrLinkUsed() error {
	return thole.Errorf(thole.CodeUnauthorized, "this login link was used or is too old").WithHint("`thole login` prints a new one")
}

// Fresh reports whether a person proved with a link just now who they are. A login
// that a token was exchanged for never was.
func (m *Manager) Fresh(s Session) bool {
	return s.Parent == "" && m.now().Before(s.Created.Add(StepUpLife))
}

// Exchange starts a session for the holder of an API token. It has the token's
// scope and ends with it.
func (m *Manager) Exchange(ctx context.Context, token, client string) (Secrets, Session, error) {
	t, err := m.Bearer(ctx, token)
	if err != nil {
		return Secrets{}, Session{}, err
	}
	if t.Scope == ScopeJobs {
		return Secrets{}, Session{}, thole.Errorf(thole.CodeForbidden, "a token of scope jobs opens no page").WithHint("thole login prints a link")
	}
	secrets, s := m.fresh(client, t.Scope)
	s.User, s.Parent, s.With = t.User, t.ID, "token"
	if !t.Expires.IsZero() && t.Expires.Before(s.Ends) {
		s.Ends = t.Expires
	}
	s.Expires = earlier(s.Expires, s.Ends)
	if err := m.store.AddSession(ctx, s); err != nil {
		return Secrets{}, Session{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	return secrets, s, nil
}

// Proven says how a user was proven: with a password, or by a provider, which can end the
// login again.
type Proven struct{ With, Issuer, SID string }

// Begin starts a session of a user who was proven otherwise.
func (m *Manager) Begin(ctx context.Context, u User, client string, p Proven) (Secrets, Session, error) {
	secrets, s := m.fresh(client, ScopeAdmin)
	s.User, s.With, s.Issuer, s.SID = u, p.With, p.Issuer, p.SID
	if err := m.store.AddSession(ctx, s); err != nil {
		return Secrets{}, Session{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	return secrets, s, nil
}

// Ended ends the requests in progress of logins and tokens that ended elsewhere.
func (m *Manager) Ended(ids []string) { m.held.end(ids) }

func (m *Manager) fresh(client string, scope Scope) (Secrets, Session) {
	secrets, now := Secrets{secret(), secret()}, m.now()
	if len(client) > 200 {
		client = client[:200]
	}
	client = strings.ToValidUTF8(strings.ReplaceAll(client, "\x00", ""), "")
	return secrets, Session{
		Hash: sum(secrets.Cookie), Proof: sum(secrets.Proof), ID: thole.NewID[string](now), Scope: scope, Client: client,
		Created: now, Seen: now, Expires: now.Add(IdleLife), Ends: now.Add(Life),
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func errUnproven() error {
	return thole.Errorf(thole.CodeUnauthorized, "not logged in").WithHint("open the link that `thole up` printed, or send an API token")
}

// Resolve finds the session of a browser's two secrets and keeps it alive. The
// cookie alone is no proof: every server of the host is sent it.
func (m *Manager) Resolve(ctx context.Context, secrets Secrets) (Session, error) {
	hash, now := sum(secrets.Cookie), m.now()
	s, found, err := m.store.Session(ctx, hash, now)
	if err != nil {
		return Session{}, thole.Errorf(thole.CodeOf(err), "read session: %w", err)
	}
	proven := unguarded.Build || subtle.ConstantTimeCompare([]byte(s.Proof), []byte(sum(secrets.Proof))) == 1
	if !found || !proven || !now.Before(s.Expires) {
		return Session{}, errUnproven()
	}
	if now.Sub(s.Seen) >= seenEvery {
		s.Seen, s.Expires = now, earlier(now.Add(IdleLife), s.Ends)
		if err := m.store.RenewSession(ctx, hash, now, s.Expires); err != nil {
			return Session{}, thole.Errorf(thole.CodeOf(err), "renew session: %w", err)
		}
	}
	return s, nil
}

// Logins lists the logged-in browsers of a user, oldest first.
func (m *Manager) Logins(ctx context.Context, user thole.UserID) ([]Session, error) {
	all, err := m.store.Sessions(ctx, user)
	if err != nil {
		return nil, thole.Errorf(thole.CodeOf(err), "list logins: %w", err)
	}
	return slices.DeleteFunc(all, func(s Session) bool { return !m.now().Before(s.Expires) }), nil
}

// EndLogin logs a browser out, with everything that was made with its login.
func (m *Manager) EndLogin(ctx context.Context, user thole.UserID, id string) error {
	ended, err := m.store.EndSession(ctx, user, id)
	return m.over(ended, err, "login", id)
}

// over ends the requests in progress of what ended.
func (m *Manager) over(ended []string, err error, kind, id string) error {
	if err != nil {
		return thole.Errorf(thole.CodeOf(err), "revoke %s: %w", kind, err)
	}
	m.held.end(ended)
	if len(ended) == 0 {
		return thole.Errorf(thole.CodeNotFound, "no %s %s", kind, id).WithHint("thole %s list shows them", kind)
	}
	return nil
}

// Sweep removes what expired.
func (m *Manager) Sweep(ctx context.Context) error {
	ended, err := m.store.Sweep(ctx, m.now())
	m.held.end(ended)
	return err
}
