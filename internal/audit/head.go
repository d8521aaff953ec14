package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
)

// SignedHead says that the chain ended with this link at that time. Kept elsewhere, it proves
// later that nothing up to it was changed or cut off.
type SignedHead struct {
	Head
	At        time.Time `json:"at"`
	Key       string    `json:"key" doc:"public Ed25519 key, base64"`
	Signature string    `json:"signature"`
}

func (s SignedHead) text() []byte {
	return []byte("thole audit head\n" + strconv.FormatInt(s.Seq, 10) + "\n" + s.Hash + "\n" + strconv.FormatInt(thole.Millis(s.At), 10) + "\n")
}

// Sign signs a head.
func Sign(key ed25519.PrivateKey, h Head, at time.Time) SignedHead {
	s := SignedHead{Head: h, At: at.UTC().Truncate(time.Millisecond), Key: base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))}
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, s.text()))
	return s
}

// Signed reports whether the signature is of the key that the head names. Whose key that is
// the reader must know.
func (s SignedHead) Signed() bool {
	key, err := base64.StdEncoding.DecodeString(s.Key)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	sig, err := base64.StdEncoding.DecodeString(s.Signature)
	return err == nil && ed25519.Verify(key, s.text(), sig)
}
