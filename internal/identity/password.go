package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"golang.org/x/crypto/argon2"
)

// The cost of a password, as OWASP advises: two passes over 19 MiB.
const (
	passes   = 2
	memoryKB = 19 << 10
	threads  = 1
	sumBytes = 32
	// hashing bounds how many are computed at a time: each takes its memory.
	hashing = 4

	minPassword = 10
	maxPassword = 256
)

// Hasher computes sums of passwords.
type hasher struct{ room chan struct{} }

func newHasher() hasher { return hasher{make(chan struct{}, hashing)} }

func checkPassword(password string) error {
	if n := len([]rune(password)); n < minPassword || len(password) > maxPassword {
		return thole.Errorf(thole.CodeInvalid, "a password has at least %d characters and at most %d bytes", minPassword, maxPassword).WithHint("a few words that belong to nobody else are a good one")
	}
	return nil
}

// Sum is what is stored of a password, with its cost and a salt of its own.
func (h hasher) sum(ctx context.Context, password string) (string, error) {
	salt := make([]byte, 16)
	rand.Read(salt) // never fails: crypto/rand aborts the program instead
	key, err := h.key(ctx, password, salt, passes, memoryKB, threads)
	if err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memoryKB, passes, threads, b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

func (h hasher) key(ctx context.Context, password string, salt []byte, t, m uint32, p uint8) ([]byte, error) {
	select {
	case h.room <- struct{}{}:
		defer func() { <-h.room }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, t, m, p, sumBytes), nil
}

// nobody is the sum of a password that nobody has: a login that does not exist costs what
// one does that exists.
const nobody = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// Is compares a password with a stored sum, "" for none: that takes as long, and is false.
func (h hasher) is(ctx context.Context, password, stored string) (bool, error) {
	known := stored != ""
	if !known {
		stored = nobody
	}
	var (
		version int
		m, t    uint32
		p       uint8
	)
	f := strings.Split(stored, "$")
	if len(f) != 6 || f[1] != "argon2id" {
		return false, thole.Errorf(thole.CodeInternal, "a stored password has an unknown form")
	}
	if _, err := fmt.Sscanf(f[2]+" "+f[3], "v=%d m=%d,t=%d,p=%d", &version, &m, &t, &p); err != nil || version != argon2.Version || m > 1<<20 || t > 100 || t < 1 || p < 1 {
		return false, thole.Errorf(thole.CodeInternal, "a stored password has an unknown form")
	}
	salt, err := base64.RawStdEncoding.DecodeString(f[4])
	if err != nil {
		return false, thole.Errorf(thole.CodeInternal, "a stored password has an unknown form")
	}
	want, err := base64.RawStdEncoding.DecodeString(f[5])
	if err != nil || len(want) != sumBytes {
		return false, thole.Errorf(thole.CodeInternal, "a stored password has an unknown form")
	}
	got, err := h.key(ctx, password, salt, t, m, p)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1 && known, err
}
