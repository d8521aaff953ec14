package session

import (
	"context"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
)

// NewToken makes an API token. The secret is returned here and never again.
func (m *Manager) NewToken(ctx context.Context, user thole.UserID, name string, life time.Duration) (string, Token, error) {
	name = strings.TrimSpace(name)
	if name == "" || len(name) > 200 {
		return "", Token{}, thole.Errorf(thole.CodeInvalid, "a token needs a name of at most 200 bytes")
	}
	if life < 0 {
		return "", Token{}, thole.Errorf(thole.CodeInvalid, "a token cannot expire in the past")
	}
	now, value := m.now(), tokenPrefix+secret()
	t := Token{Hash: sum(value), ID: thole.NewID[string](now), User: User{ID: user}, Name: name, Created: now}
	if life > 0 {
		t.Expires = now.Add(life)
	}
	if err := m.store.AddToken(ctx, t, maxTokens); err != nil {
		return "", Token{}, thole.Errorf(thole.CodeOf(err), "make token: %w", err)
	}
	return value, t, nil
}

func (m *Manager) token(ctx context.Context, value string) (Token, error) {
	if !strings.HasPrefix(value, tokenPrefix) {
		return Token{}, errUnproven()
	}
	hash, now := sum(value), m.now()
	t, found, err := m.store.Token(ctx, hash)
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

// Bearer finds the token that a script sent.
func (m *Manager) Bearer(ctx context.Context, value string) (Token, error) {
	return m.token(ctx, value)
}

// Tokens lists the tokens of a user, oldest first.
func (m *Manager) Tokens(ctx context.Context, user thole.UserID) ([]Token, error) {
	all, err := m.store.Tokens(ctx, user)
	if err != nil {
		return nil, thole.Errorf(thole.CodeOf(err), "list tokens: %w", err)
	}
	return all, nil
}

// Revoke ends a token of the user.
func (m *Manager) Revoke(ctx context.Context, user thole.UserID, id string) error {
	found, err := m.store.RemoveToken(ctx, user, id)
	if err != nil {
		return thole.Errorf(thole.CodeOf(err), "revoke token: %w", err)
	}
	if !found {
		return thole.Errorf(thole.CodeNotFound, "no token %s", id)
	}
	return nil
}
