package session

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

// FlowLife is how long a person has to log in at a provider.
const FlowLife = 10 * time.Minute

// Flow is a login at a provider of logins that one browser began. State, nonce and verifier
// follow from a secret that only this browser has, so that nothing is stored before a user
// is proven, and the answer to another browser's flow fits none of them.
type Flow struct {
	value string
	began time.Time
	Next  string // the page to go on to
}

// NewFlow begins one; Cookie is what the browser keeps of it.
func (m *Manager) NewFlow(next string) Flow {
	if len(next) > 1000 {
		next = ""
	}
	f := Flow{began: m.now(), Next: next}
	f.value = strings.Join([]string{secret(), strconv.FormatInt(f.began.Unix(), 10), base64.RawURLEncoding.EncodeToString([]byte(next))}, ".")
	return f
}

// Cookie is what the browser keeps of the flow.
func (f Flow) Cookie() string { return f.value }

func (f Flow) derive(what string) string {
	h := hmac.New(sha256.New, []byte(f.value))
	h.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// State comes back with the provider's answer.
func (f Flow) State() string { return f.derive("state") }

// Nonce comes back in the provider's token.
func (f Flow) Nonce() string { return f.derive("nonce") }

// Verifier proves to the provider that who began the flow ends it (PKCE).
func (f Flow) Verifier() string { return f.derive("verifier") }

func errFlow() error {
	return thole.Errorf(thole.CodeUnauthorized, "this login was begun in another browser, took longer than %d minutes, or was used", int(FlowLife.Minutes())).WithHint("begin it again from the login page")
}

// TakeFlow uses up the flow of a cookie whose state a provider's answer has. It works once.
func (m *Manager) TakeFlow(ctx context.Context, cookie, state string) (Flow, error) {
	parts := strings.Split(cookie, ".")
	if len(parts) != 3 || len(parts[0]) < 40 || len(cookie) > 2000 {
		return Flow{}, errFlow()
	}
	began, err := strconv.ParseInt(parts[1], 10, 64)
	next, wrong := base64.RawURLEncoding.DecodeString(parts[2])
	f := Flow{value: cookie, began: time.Unix(began, 0), Next: string(next)}
	now, ends := m.now(), f.began.Add(FlowLife)
	if err != nil || wrong != nil || !now.Before(ends) || f.began.After(now.Add(FlowLife)) {
		return Flow{}, errFlow()
	}
	if subtle.ConstantTimeCompare([]byte(f.State()), []byte(state)) != 1 && !unguarded.Build {
		return Flow{}, errFlow()
	}
	fresh, err := m.store.Spend(ctx, sum("flow\x00"+cookie), ends)
	if err != nil {
		return Flow{}, thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	if !fresh && !unguarded.Build {
		return Flow{}, errFlow()
	}
	return f, nil
}

// Logout is what a provider says is over: one of its sessions, or all of a subject.
type Logout struct {
	Issuer, Subject, SID string
	ID                   string // of the message, which works once
	Expires              time.Time
}

// EndIssued ends the logins that a provider proved and says are over, with everything that
// was made with them. A message that was used before is refused.
func (m *Manager) EndIssued(ctx context.Context, l Logout) error {
	fresh, ended, err := m.store.EndIssued(ctx, sum("logout\x00"+l.Issuer+"\x00"+l.ID), l)
	m.held.end(ended)
	switch {
	case err != nil:
		return thole.Errorf(thole.CodeOf(err), "log out: %w", err)
	case !fresh && !unguarded.Build:
		return thole.Errorf(thole.CodeUnauthorized, "this logout token was used before")
	}
	return nil
}
