package registry

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"strings"

	thole "github.com/tholehq/thole"
)

// Role is what a token is for.
type Role string

const (
	RoleExecutor Role = "executor"
	RoleHarness  Role = "harness"
	RoleBoth     Role = "both"
)

// minToken is the shortest token: 16 random characters are not guessed.
const minToken = 16

// defaultOwner has the tokens of lines that name none.
const defaultOwner = "owner"

// Tokens are who may use a registry. The zero value is nobody.
type Tokens struct {
	known map[[sha256.Size]byte]bearer
}

type bearer struct {
	owner string
	role  Role
}

// OpenTokens is ReloadTokens of a file that is made, with one token, where it is missing.
func OpenTokens(path string) (t *Reloaded[*Tokens], made bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		made = true
		_, err = f.WriteString(rand.Text() + "\n")
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return nil, false, thole.Errorf(thole.CodeUnavailable, "make the file of tokens: %w", err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, false, thole.Errorf(thole.CodeInvalid, "make the file of tokens: %w", err)
	}
	t, err = ReloadTokens(path)
	return t, made, err
}

// ReadTokens reads a file of lines TOKEN, or OWNER ROLE TOKEN with a role of
// executor, harness or both. Lines that are empty or begin with # are passed over.
// Only the file's user may be able to read it.
func ReadTokens(path string) (*Tokens, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read tokens: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "tokens in %s can be read by other users", path).WithHint("chmod 600 %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read tokens: %w", err)
	}
	return ParseTokens(string(text))
}

// ParseTokens is ReadTokens of a text.
func ParseTokens(text string) (*Tokens, error) {
	t := &Tokens{known: map[[sha256.Size]byte]bearer{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		b := bearer{defaultOwner, RoleBoth}
		if len(words) == 3 {
			b = bearer{words[0], Role(words[1])}
		}
		token := words[len(words)-1]
		switch {
		case len(words) != 1 && len(words) != 3:
			return nil, thole.Errorf(thole.CodeInvalid, "tokens, line %d: expected TOKEN or OWNER ROLE TOKEN", n)
		case b.role != RoleExecutor && b.role != RoleHarness && b.role != RoleBoth:
			return nil, thole.Errorf(thole.CodeInvalid, "tokens, line %d: role %q is unknown: it is executor, harness or both", n, b.role)
		case len(token) < minToken:
			return nil, thole.Errorf(thole.CodeInvalid, "tokens, line %d: a token has at least %d characters", n, minToken)
		}
		name := sha256.Sum256([]byte(token))
		if _, ok := t.known[name]; ok {
			return nil, thole.Errorf(thole.CodeInvalid, "tokens, line %d: the token occurs twice", n)
		}
		t.known[name] = b
	}
	if len(t.known) == 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "tokens: there is none")
	}
	return t, nil
}

// owner finds whose token a request shows. Tokens are compared as hashes, so that
// the time of it says nothing about them.
func (t *Tokens) owner(header string, role Role) (string, error) {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || t == nil {
		return "", thole.Errorf(thole.CodeUnauthorized, "a bearer token is required")
	}
	b, ok := t.known[sha256.Sum256([]byte(strings.TrimSpace(token)))]
	switch {
	case !ok:
		return "", thole.Errorf(thole.CodeUnauthorized, "unknown token")
	case b.role != RoleBoth && b.role != role:
		return "", thole.Errorf(thole.CodeForbidden, "this token is for the role %s", b.role)
	}
	return b.owner, nil
}
