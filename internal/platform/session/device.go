package session

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

const (
	// DeviceLife is how long a program waits for a person to confirm its login.
	DeviceLife = 10 * time.Minute
	// maxDevices bounds the programs that wait at a time, maxDevicesOfAddress those of one
	// address.
	maxDevices, maxDevicesOfAddress = 1000, 10
	// codeLetters have none that look or sound like another.
	codeLetters = "BCDFGHJKLMNPQRSTVWXZ"
)

// Device is a program that waits for a person to confirm its login. The program has made an
// API token itself, of which only the sum is known here: nobody but the program ever has it.
type Device struct {
	Hash    string // of the code
	Token   string // sum of the token
	Name    string
	Scope   Scope
	Address string // that it asked from
	Created time.Time
	Expires time.Time
}

// DeviceToken makes the API token of a program that is about to ask, and its sum.
func DeviceToken() (value, hash string) {
	value = tokenPrefix + secret()
	return value, sum(value)
}

// deviceCode is what a person compares and confirms: 20^8, more than anybody can try while
// it works.
func deviceCode() string {
	var b strings.Builder
	for b.Len() < 9 {
		if b.Len() == 4 {
			b.WriteByte('-')
		}
		var one [1]byte
		rand.Read(one[:]) // never fails: crypto/rand aborts the program instead
		if n := int(one[0]); n < 240 {
			b.WriteByte(codeLetters[n%len(codeLetters)])
		}
	}
	return b.String()
}

// plainCode is a code as it was made, however a person typed it.
func plainCode(code string) string {
	code = strings.Map(func(r rune) rune {
		if strings.ContainsRune(codeLetters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	if len(code) != 8 {
		return ""
	}
	return code[:4] + "-" + code[4:]
}

// AddDevice records a program that waits, and returns the code that a person confirms.
func (m *Manager) AddDevice(ctx context.Context, d Device) (code string, err error) {
	d.Name = strings.TrimSpace(strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, d.Name), ""))
	if d.Name == "" || len(d.Name) > 200 || len(d.Token) != 64 || strings.Trim(d.Token, "0123456789abcdef") != "" {
		return "", thole.Errorf(thole.CodeInvalid, "a program that logs in has a name of at most 200 bytes, and the SHA-256 of its token")
	}
	if d.Scope == "" {
		d.Scope = ScopeAct
	}
	if !d.Scope.Valid() || d.Scope == ScopeJobs {
		return "", thole.Errorf(thole.CodeInvalid, "scope %q is not for a login", d.Scope).WithHint("it is read, act or admin")
	}
	code = deviceCode()
	d.Hash, d.Created = sum(code), m.now()
	d.Expires = d.Created.Add(DeviceLife)
	if err := m.store.AddDevice(ctx, d, maxDevices, maxDevicesOfAddress); err != nil {
		return "", thole.Errorf(thole.CodeOf(err), "log in: %w", err)
	}
	return code, nil
}

func errDevice() error {
	return thole.Errorf(thole.CodeNotFound, "no program waits with this code").WithHint("codes work for %d minutes and once; begin again with thole login --server", int(DeviceLife.Minutes()))
}

// Device finds the program that waits with a code.
func (m *Manager) Device(ctx context.Context, code string) (Device, error) {
	d, found, err := m.store.Device(ctx, sum(plainCode(code)), m.now())
	if err == nil && !found {
		err = errDevice()
	}
	return d, err
}

// DeviceState is how far the login of a program is.
type DeviceState string

// The states.
const (
	DeviceWaits     DeviceState = "waiting"
	DeviceConfirmed DeviceState = "confirmed"
	DeviceGone      DeviceState = "gone" // refused, or too late
)

// DeviceState says how far the login of the program with this token is.
func (m *Manager) DeviceState(ctx context.Context, token string) (DeviceState, error) {
	waits, confirmed, err := m.store.DeviceState(ctx, token, m.now())
	switch {
	case err != nil:
		return "", err
	case confirmed:
		return DeviceConfirmed, nil
	case waits:
		return DeviceWaits, nil
	}
	return DeviceGone, nil
}

// EndDevice confirms the login of a program or refuses it; the code is used up. Only a person
// who proved just now who they are can confirm, and for no more than they may do themselves.
func (m *Manager) EndDevice(ctx context.Context, user thole.UserID, by Maker, code string, confirm bool) (Token, error) {
	d, err := m.Device(ctx, code)
	if err != nil {
		return Token{}, err
	}
	if !confirm {
		return Token{}, m.store.RefuseDevice(ctx, d.Hash)
	}
	if !by.Fresh && !unguarded.Build {
		return Token{}, thole.Errorf(thole.CodeForbidden, "a program is let in only by who proves again who they are: this login is older than %s, or comes from a token", StepUpLife).
			WithHint("log in again on this page, then confirm")
	}
	if !by.Scope.Covers(d.Scope) {
		return Token{}, thole.Errorf(thole.CodeForbidden, "a login of scope %s cannot let in one of scope %s", by.Scope, d.Scope)
	}
	now := m.now()
	t := Token{Hash: d.Token, ID: thole.NewID[string](now), User: User{ID: user}, Name: d.Name, Scope: d.Scope, Created: now, Expires: now.Add(TokenLife)}
	found, err := m.store.ConfirmDevice(ctx, d.Hash, t, maxTokens)
	if err == nil && !found {
		err = errDevice()
	}
	if err != nil {
		return Token{}, thole.Errorf(thole.CodeOf(err), "confirm: %w", err)
	}
	return t, nil
}
