package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// LinkLife is how long a link works that lets a person choose a password.
const LinkLife = 72 * time.Hour

// SetupLife is how long the link works that a server prints at its first start.
const SetupLife = time.Hour

// Config makes a Machine.
type Config struct {
	Store Store
	// Ended is called with the ids of logins and tokens that ended with an account; nil:
	// nobody waits for them.
	Ended func(ids []string)
	// Disabled is called with a user who was shut out: what runs for them is to stop. nil: nothing runs.
	Disabled func(ctx context.Context, user thole.UserID) error
	Now      func() time.Time // time.Now when nil
	NewID    func(time.Time) string
}

// Machine changes who there is and what was granted. Safe for concurrent use, also by
// several processes on one store.
type Machine struct {
	cfg    Config
	hash   hasher
	tries  throttle
	rights rights
}

// New makes a machine. Close ends it.
func New(cfg Config) *Machine {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = thole.NewID[string]
	}
	if cfg.Ended == nil {
		cfg.Ended = func([]string) {}
	}
	if cfg.Disabled == nil {
		cfg.Disabled = func(context.Context, thole.UserID) error { return nil }
	}
	m := &Machine{cfg: cfg, hash: newHasher()}
	m.rights.cancel = cfg.Store.Watch(m.rights.forget)
	return m
}

// Close stops listening for changes.
func (m *Machine) Close() { m.rights.cancel() }

func (m *Machine) now() time.Time { return m.cfg.Now().UTC().Truncate(time.Millisecond) }

// may refuses an actor who may not do that. The rights are read, not remembered.
func (m *Machine) may(ctx context.Context, actor thole.Actor, action authz.Action, on authz.Resource, where string) (authz.Subject, error) {
	s, err := m.read(ctx, actor)
	if err != nil {
		return s, err
	}
	if ok, _ := authz.Can(s, action, on); !ok {
		return s, thole.Errorf(thole.CodeForbidden, "this needs the right to %s on %s", action, where).WithHint("ask who runs this server")
	}
	return s, nil
}

// Require refuses an actor who may not do that on the platform.
func (m *Machine) Require(ctx context.Context, actor thole.Actor, action authz.Action) error {
	_, err := m.may(ctx, actor, action, authz.Resource{}, platform)
	return err
}

const platform = "the platform"

var loginForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,63}$`)

// checkLogin returns the one form of a login: two that look the same are the same.
func checkLogin(login string) (string, error) {
	login = strings.ToLower(strings.TrimSpace(login))
	if !loginForm.MatchString(login) {
		return "", thole.Errorf(thole.CodeInvalid, "login %q is not 1 to 64 of a-z, 0-9 and . _ @ + -, beginning with a letter or digit", login)
	}
	return login, nil
}

func checkText(what, s string, limit int) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) > limit || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return "", thole.Errorf(thole.CodeInvalid, "a %s is one line of at most %d bytes", what, limit)
	}
	return s, nil
}

func secret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func sum(secret string) string {
	h := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(h[:])
}

func errNoUser(login string) error {
	return thole.Errorf(thole.CodeNotFound, "no user %s", login).WithHint("thole user list shows them")
}

func orNow(err error, ok bool, what string) error {
	if err == nil && !ok {
		err = thole.Errorf(thole.CodeConflict, "%s was changed meanwhile", what).WithHint("look again and repeat it")
	}
	return err
}
