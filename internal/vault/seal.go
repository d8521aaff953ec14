package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/tholehq/thole/internal/unguarded"
)

// KeySize is the length of data keys and of the key that wraps them.
const KeySize = 32

// Sealed is a value as it is stored.
type Sealed struct{ Nonce, Text []byte }

// Seal encrypts with AES-256-GCM under a nonce of its own. What is sealed opens only
// with the same words, so that a row cannot be put in another's place.
func Seal(key, plain []byte, words ...string) (Sealed, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return Sealed{}, err
	}
	nonce := make([]byte, gcm.NonceSize())
	rand.Read(nonce) // never fails: crypto/rand aborts the program instead
	return Sealed{nonce, gcm.Seal(nil, nonce, plain, bind(words))}, nil
}

var errDamaged = errors.New("it does not open with its key: the row is damaged, or was changed or moved")

// Unseal is the inverse of Seal.
func Unseal(key []byte, s Sealed, words ...string) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	if len(s.Nonce) != gcm.NonceSize() {
		return nil, errDamaged
	}
	plain, err := gcm.Open(nil, s.Nonce, s.Text, bind(words))
	if err != nil {
		return nil, errDamaged
	}
	return plain, nil
}

func newGCM(key []byte) (cipher.AEAD, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("a key has %d bytes, not %d", KeySize, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// bind writes words so that no two lists of them are written the same.
func bind(words []string) []byte {
	if unguarded.Build {
		return nil
	}
	var out []byte
	for _, w := range words {
		out = binary.BigEndian.AppendUint32(out, uint32(len(w)))
		out = append(out, w...)
	}
	return out
}

// words are what a value is bound to: a copy of it opens nowhere else, and an older
// value of the same item does not either.
func (i Item) words() []string {
	return []string{"item", string(i.ID), string(i.Owner.Kind), i.Owner.ID, i.Name, strconv.FormatInt(i.Version, 10)}
}

func (k Key) words() []string {
	return []string{"key", k.ID, string(k.Owner.Kind), k.Owner.ID}
}

// fingerprint of a value under its owner's data key.
func fingerprint(dek, value []byte) (string, error) {
	key, err := hkdf.Key(sha256.New, dek, nil, "thole vault fingerprint", KeySize)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(value)
	return hex.EncodeToString(mac.Sum(nil)[:6]), nil
}
