// Package noise is the handshake of exec-server's remote mode and the records after
// it: Noise IK made hybrid, with X25519 and ML-KEM-768 together, AES-256-GCM and
// SHA-256. Who listens to the line today and has a quantum computer one day cannot
// read it; who changes a byte of it ends it. It opens no socket and trusts no key
// by itself: its callers say which keys they expect.
package noise

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
)

const (
	// protocolName is hashed into the transcript. It differs from the name of the suite.
	protocolName = "Noise_hybridIK_25519+MLKEM768_AESGCM_SHA256"
	prologueName = "codex-exec-server-relay-noise/v1"

	dhSize  = 32
	kemSize = mlkem.EncapsulationKeySize768
	ctSize  = mlkem.CiphertextSize768
	tagSize = 16

	// Message1Size is the length of the first message without its payload.
	Message1Size = ctSize + dhSize + kemSize + dhSize + tagSize + kemSize + tagSize + tagSize
	// Message2Size is the length of the second message.
	Message2Size = ctSize + ctSize + tagSize + dhSize + kemSize + tagSize
	// Overhead is what encryption adds to a record.
	Overhead = tagSize
	// seedSize is the length of an identity: a private key and a seed.
	seedSize = dhSize + mlkem.SeedSize
)

// ErrHandshake is every failure of a handshake. It says no more, as its reader may be
// the attacker.
var ErrHandshake = errors.New("noise: handshake failed")

// PublicKey is the public half of an Identity.
type PublicKey struct {
	dh  *ecdh.PublicKey
	kem *mlkem.EncapsulationKey768
}

// ParsePublicKey reads the two parts of a key.
func ParsePublicKey(x25519, mlkem768 []byte) (PublicKey, error) {
	dh, err := ecdh.X25519().NewPublicKey(x25519)
	if err != nil {
		return PublicKey{}, fmt.Errorf("X25519 key of %d bytes: %w", len(x25519), err)
	}
	kem, err := mlkem.NewEncapsulationKey768(mlkem768)
	if err != nil {
		return PublicKey{}, fmt.Errorf("ML-KEM-768 key of %d bytes: %w", len(mlkem768), err)
	}
	return PublicKey{dh, kem}, nil
}

// X25519 is the first part of the key.
func (k PublicKey) X25519() []byte { return k.dh.Bytes() }

// MLKEM768 is the second part of the key.
func (k PublicKey) MLKEM768() []byte { return k.kem.Bytes() }

// fingerprintPrefix begins every fingerprint.
const fingerprintPrefix = "sha256:"

// Fingerprint names the key, for people to compare.
func (k PublicKey) Fingerprint() string {
	h := sha256.New()
	h.Write(k.X25519())
	h.Write(k.MLKEM768())
	return fingerprintPrefix + hex.EncodeToString(h.Sum(nil))
}

// ParseFingerprint checks what a person typed and returns it in lower case.
func ParseFingerprint(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	raw, err := hex.DecodeString(strings.TrimPrefix(s, fingerprintPrefix))
	if err != nil || len(raw) != sha256.Size || !strings.HasPrefix(s, fingerprintPrefix) {
		return "", fmt.Errorf("invalid fingerprint %q: it is %sHEX with 64 hex digits", s, fingerprintPrefix)
	}
	return s, nil
}

// Identity is a long-term key pair.
type Identity struct {
	dh  *ecdh.PrivateKey
	kem *mlkem.DecapsulationKey768
}

// NewIdentity makes a key pair.
func NewIdentity() (*Identity, error) {
	seed := make([]byte, seedSize)
	_, _ = rand.Read(seed) // never fails
	return ParseIdentity(seed)
}

// ParseIdentity is the Identity that Seed came from.
func ParseIdentity(seed []byte) (*Identity, error) {
	if len(seed) != seedSize {
		return nil, fmt.Errorf("identity of %d bytes: it has %d", len(seed), seedSize)
	}
	dh, err := ecdh.X25519().NewPrivateKey(seed[:dhSize])
	if err != nil {
		return nil, err
	}
	kem, err := mlkem.NewDecapsulationKey768(seed[dhSize:])
	if err != nil {
		return nil, err
	}
	return &Identity{dh, kem}, nil
}

// Seed is the secret from which the identity can be made again.
func (i *Identity) Seed() []byte { return append(i.dh.Bytes(), i.kem.Bytes()...) }

// Public is the public half.
func (i *Identity) Public() PublicKey { return PublicKey{i.dh.PublicKey(), i.kem.EncapsulationKey()} }

// Prologue binds a handshake to one stream of one registration of one environment.
type Prologue struct{ Environment, Registration, Stream string }

func (p Prologue) bytes() (b []byte) {
	for _, part := range []string{prologueName, p.Environment, p.Registration, p.Stream} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// symmetric is the state that both sides derive from what they sent.
type symmetric struct {
	ck, h [sha256.Size]byte
	aead  cipher.AEAD // nil until the first secret
	n     uint64
}

func newSymmetric(p Prologue, responder PublicKey) *symmetric {
	s := &symmetric{h: sha256.Sum256([]byte(protocolName))}
	s.ck = s.h
	s.mixHash(p.bytes())
	s.mixHash(responder.X25519())
	s.mixHash(responder.MLKEM768())
	return s
}

func (s *symmetric) mixHash(b []byte) {
	d := sha256.New()
	d.Write(s.h[:])
	d.Write(b)
	d.Sum(s.h[:0])
}

// mixKey takes a secret in. With hash, the transcript changes with it.
func (s *symmetric) mixKey(secret []byte, hash bool) error {
	size := 2 * sha256.Size
	if hash {
		size += sha256.Size
	}
	out, err := hkdf.Key(sha256.New, secret, s.ck[:], "", size)
	if err != nil {
		return err
	}
	copy(s.ck[:], out)
	if hash {
		s.mixHash(out[sha256.Size : 2*sha256.Size])
	}
	s.n = 0
	s.aead, err = newAEAD(out[size-sha256.Size:])
	clear(out)
	clear(secret)
	return err
}

func (s *symmetric) seal(dst, plain []byte) []byte {
	if s.aead == nil {
		s.mixHash(plain)
		return append(dst, plain...)
	}
	at := len(dst)
	dst = s.aead.Seal(dst, nonce(s.n), plain, s.h[:])
	s.n++
	s.mixHash(dst[at:])
	return dst
}

func (s *symmetric) open(sealed []byte) ([]byte, error) {
	if s.aead == nil {
		s.mixHash(sealed)
		return sealed, nil
	}
	plain, err := s.aead.Open(nil, nonce(s.n), sealed, s.h[:])
	if err != nil {
		return nil, err
	}
	s.n++
	s.mixHash(sealed)
	return plain, nil
}

// split ends the handshake: one key per direction, and nothing of the state remains.
func (s *symmetric) split() (first, second *Cipher, err error) {
	out, err := hkdf.Key(sha256.New, nil, s.ck[:], "", 2*sha256.Size)
	if err != nil {
		return nil, nil, err
	}
	a, errA := newAEAD(out[:sha256.Size])
	b, errB := newAEAD(out[sha256.Size:])
	clear(out)
	*s = symmetric{}
	return &Cipher{aead: a}, &Cipher{aead: b}, errors.Join(errA, errB)
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func nonce(n uint64) []byte {
	b := make([]byte, 12)
	binary.BigEndian.PutUint64(b[4:], n)
	return b
}

// Cipher is one direction of an established stream. It is for one goroutine at a time.
type Cipher struct {
	aead cipher.AEAD
	n    uint64
	iv   [12]byte
}

// ErrExhausted: no record may be encrypted with the key again.
var ErrExhausted = errors.New("noise: the key has no numbers left")

func (c *Cipher) next() ([]byte, error) {
	if c.n >= math.MaxUint64-1 {
		return nil, ErrExhausted
	}
	binary.BigEndian.PutUint64(c.iv[4:], c.n)
	c.n++
	return c.iv[:], nil
}

// Seal encrypts the next record and appends it to dst, which may end where plain begins.
func (c *Cipher) Seal(dst, plain []byte) ([]byte, error) {
	iv, err := c.next()
	if err != nil {
		return nil, err
	}
	return c.aead.Seal(dst, iv, plain, nil), nil
}

// Open decrypts the next record and appends it to dst.
func (c *Cipher) Open(dst, sealed []byte) ([]byte, error) {
	iv, err := c.next()
	if err != nil {
		return nil, err
	}
	return c.aead.Open(dst, iv, sealed, nil)
}
