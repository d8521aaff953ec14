package transport

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/unguarded"
)

// The values of --ws-auth.
const (
	ModeUnset        = ""
	ModeNone         = "none"
	ModeCapability   = "capability-token"
	ModeSignedBearer = "signed-bearer-token"
)

// AuthOptions are the --ws-* flags.
type AuthOptions struct {
	Mode         string
	TokenFile    string
	TokenSHA256  string // 64 hex digits
	SecretFile   string
	Issuer       string
	Audience     string
	MaxClockSkew time.Duration // 0 means 30 s
	Now          func() time.Time
}

// Auth decides who may open a WebSocket. The nil Auth is ModeUnset.
type Auth struct {
	mode  string
	token [sha256.Size]byte
	jwt   *jwtVerifier
}

// NewAuth reads the secrets once; it refuses flags that do not belong to the mode.
func NewAuth(o AuthOptions) (*Auth, error) {
	invalid := func(format string, args ...any) (*Auth, error) {
		return nil, thole.Errorf(thole.CodeInvalid, format, args...)
	}
	jwtFlags := o.SecretFile != "" || o.Issuer != "" || o.Audience != "" || o.MaxClockSkew != 0
	tokenFlags := o.TokenFile != "" || o.TokenSHA256 != ""
	a := &Auth{mode: o.Mode}
	switch o.Mode {
	case ModeUnset, ModeNone:
		if tokenFlags || jwtFlags {
			return invalid("--ws-token-*, --ws-shared-secret-file, --ws-issuer, --ws-audience and --ws-max-clock-skew-seconds need --ws-auth")
		}
		return a, nil
	case ModeCapability:
		if jwtFlags || (o.TokenFile == "") == (o.TokenSHA256 == "") {
			return invalid("--ws-auth capability-token needs exactly one of --ws-token-file and --ws-token-sha256")
		}
		return orNil(a, a.loadToken(o))
	case ModeSignedBearer:
		if tokenFlags || o.SecretFile == "" {
			return invalid("--ws-auth signed-bearer-token needs --ws-shared-secret-file and no token flags")
		}
		return orNil(a, a.loadSecret(o))
	}
	return invalid("--ws-auth %q is unknown; it is capability-token, signed-bearer-token or none", o.Mode)
}

func orNil(a *Auth, err error) (*Auth, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Auth) loadToken(o AuthOptions) error {
	if o.TokenSHA256 != "" {
		sum, err := hex.DecodeString(o.TokenSHA256)
		if err != nil || len(sum) != sha256.Size {
			return thole.Errorf(thole.CodeInvalid, "--ws-token-sha256 must be 64 hex digits")
		}
		copy(a.token[:], sum)
		return nil
	}
	token, err := readSecret("--ws-token-file", o.TokenFile, 1)
	a.token = sha256.Sum256(token)
	return err
}

func (a *Auth) loadSecret(o AuthOptions) error {
	secret, err := readSecret("--ws-shared-secret-file", o.SecretFile, 32)
	if err != nil {
		return err
	}
	if o.MaxClockSkew < 0 {
		return thole.Errorf(thole.CodeInvalid, "--ws-max-clock-skew-seconds must not be negative")
	}
	v := &jwtVerifier{secret: secret, issuer: o.Issuer, audience: o.Audience, skew: o.MaxClockSkew, now: o.Now}
	if v.skew == 0 {
		v.skew = 30 * time.Second
	}
	if v.now == nil {
		v.now = time.Now
	}
	a.jwt = v
	return nil
}

func readSecret(flag, path string, least int) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read %s: %w", flag, err)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) < least {
		return nil, thole.Errorf(thole.CodeInvalid, "%s %s must hold at least %d bytes", flag, path, least)
	}
	return raw, nil
}

// Required reports whether a connection needs a token.
func (a *Auth) Required() bool {
	return a != nil && (a.mode == ModeCapability || a.mode == ModeSignedBearer)
}

// Permit refuses addresses that this Auth may not serve: a TCP port wants a
// token, on loopback at least the explicit word "none".
func (a *Auth) Permit(addr Address) error {
	switch {
	case addr.Scheme != WS && a.Required():
		return thole.Errorf(thole.CodeInvalid, "--ws-auth belongs to ws:// listeners, not to %s", addr)
	case addr.Scheme != WS || a.Required() || unguarded.Build:
		return nil
	case !addr.TCP.Addr().Unmap().IsLoopback():
		return thole.Errorf(thole.CodeForbidden, "refusing to listen on %s without authentication", addr).
			WithHint("add --ws-auth capability-token --ws-token-file FILE, or listen on 127.0.0.1")
	case a == nil || a.mode != ModeNone:
		return thole.Errorf(thole.CodeForbidden, "refusing to listen on %s without authentication: every user and browser of this machine could connect", addr).
			WithHint("add --ws-auth capability-token --ws-token-file FILE, or say --ws-auth none")
	}
	return nil
}

var (
	errMissing = errors.New("missing websocket bearer token")
	errHeader  = errors.New("invalid authorization header")
	errToken   = errors.New("invalid websocket bearer token")
)

// Check returns nil when the request may connect; the error's text is the body
// of the 401 and says nothing about the secret.
func (a *Auth) Check(r *http.Request) error {
	if !a.Required() {
		return nil
	}
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return errMissing
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	if !ok || len(headers) > 1 || !strings.EqualFold(scheme, "bearer") || token == "" {
		return errHeader
	}
	if a.jwt != nil {
		return a.jwt.verify(token)
	}
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], a.token[:]) != 1 {
		return errToken
	}
	return nil
}
