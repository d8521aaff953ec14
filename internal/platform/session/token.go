package session

import (
	"context"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

// Grant is what a new token is to be.
type Grant struct {
	Name  string
	Scope Scope         // "": act
	Life  time.Duration // 0: TokenLife
	Never bool          // it does not expire
	By    Maker
	Code  string // of a link that nobody used yet: a fresh proof of who asks
}

// Maker is the login or token that a token is made with; zero: the home's socket,
// whose user may make any.
type Maker struct {
	ID    string
	Scope Scope
	Ends  time.Time // zero: never
	Fresh bool      // a person proved with a link just now who they are
}

func errStepUp(what, command string) error {
	return thole.Errorf(thole.CodeForbidden, "%s only by who proves again who they are: this login is older than %s, or comes from a token", what, StepUpLife).
		WithHint("use `%s`, or send the code of a new `thole login` link as confirm_code", command)
}

// Confirm lets a person set a secret who proved just now who they are, or does so with
// the code of a link that nobody used yet; the code is used up.
func (m *Manager) Confirm(ctx context.Context, user thole.UserID, by Maker, code string) error {
	if by.ID == "" || by.Fresh {
		return nil
	}
	if code == "" {
		return errStepUp("a secret is set", "thole secret set")
	}
	used, err := m.store.UseCode(ctx, sum(code), user, m.now())
	if err != nil {
		return thole.Errorf(thole.CodeOf(err), "confirm: %w", err)
	}
	if !used {
		return ErrLinkUsed()
	}
	return nil
}

// NewToken makes an API token. The secret is returned here and never again.
func (m *Manager) NewToken(ctx context.Context, user thole.UserID, g Grant) (string, Token, error) {
	name := strings.TrimSpace(g.Name)
	if name == "" || len(name) > 200 {
		return "", Token{}, thole.Errorf(thole.CodeInvalid, "a token needs a name of at most 200 bytes")
	}
	if g.Life < 0 || g.Never && g.Life > 0 {
		return "", Token{}, thole.Errorf(thole.CodeInvalid, "a token expires in the future, or never")
	}
	if g.Scope == "" {
		g.Scope = ScopeAct
	}
	if !g.Scope.Valid() {
		return "", Token{}, thole.Errorf(thole.CodeInvalid, "scope %q is unknown", g.Scope).WithHint("it is jobs, read, act or admin")
	}
	// A stolen token or login must not become a lasting one.
	confirmed := ""
	if g.By.ID != "" && !g.By.Fresh && !unguarded.Build {
		if g.Code == "" {
			return "", Token{}, errStepUp("a token is made", "thole token create")
		}
		confirmed = sum(g.Code)
	}
	now, value := m.now(), tokenPrefix+secret()
	t := Token{Hash: sum(value), ID: thole.NewID[string](now), User: User{ID: user}, Name: name, Scope: g.Scope, Parent: g.By.ID, Created: now}
	switch {
	case g.Life > 0:
		t.Expires = now.Add(g.Life)
	case !g.Never:
		t.Expires = now.Add(TokenLife)
	}
	if g.By.ID != "" {
		if !g.By.Scope.Covers(t.Scope) {
			return "", Token{}, thole.Errorf(thole.CodeForbidden, "a token of scope %s cannot be made with scope %s", t.Scope, g.By.Scope)
		}
		if !g.By.Ends.IsZero() && (t.Expires.IsZero() || g.By.Ends.Before(t.Expires)) {
			t.Expires = g.By.Ends
		}
	}
	if err := m.store.AddToken(ctx, t, maxTokens, confirmed); err != nil {
		return "", Token{}, thole.Errorf(thole.CodeOf(err), "make token: %w", err)
	}
	return value, t, nil
}

// Bearer finds the token that a script sent.
func (m *Manager) Bearer(ctx context.Context, value string) (Token, error) {
	if !strings.HasPrefix(value, tokenPrefix) {
		return Token{}, errUnproven()
	}
	hash, now := sum(value), m.now()
	t, found, err := m.store.Token(ctx, hash, now)
	if err != nil {
		return Token{}, thole.Errorf(thole.CodeOf(err), "read token: %w", err)
	}
	if !found || !t.Expires.IsZero() && !now.Before(t.Expires) {
		return Token{}, thole.Errorf(thole.CodeUnauthorized, "the API token is unknown, revoked or expired")
	}
	if now.Sub(t.Seen) >= seenEvery {
		if err := m.store.SeeToken(ctx, hash, now); err != nil {
			return Token{}, thole.Errorf(thole.CodeOf(err), "read token: %w", err)
		}
		t.Seen = now
	}
	return t, nil
}

// Tokens lists the tokens of a user, oldest first.
func (m *Manager) Tokens(ctx context.Context, user thole.UserID) ([]Token, error) {
	all, err := m.store.Tokens(ctx, user)
	if err != nil {
		return nil, thole.Errorf(thole.CodeOf(err), "list tokens: %w", err)
	}
	return all, nil
}

// Revoke ends a token of the user, with everything that was made with it.
func (m *Manager) Revoke(ctx context.Context, user thole.UserID, id string) error {
	ended, err := m.store.EndToken(ctx, user, id)
	return m.over(ended, err, "token", id)
}
