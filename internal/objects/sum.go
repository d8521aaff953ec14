package objects

import (
	"crypto/sha256"
	"encoding/hex"

	thole "github.com/tholehq/thole"
)

// Sum is a SHA-256. The zero Sum stands for none.
type Sum [sha256.Size]byte

// SumOf returns the sum of data.
func SumOf(data []byte) Sum { return sha256.Sum256(data) }

// ParseSum reads what String wrote.
func ParseSum(s string) (sum Sum, err error) {
	if len(s) != 2*len(sum) {
		return sum, thole.Errorf(thole.CodeInvalid, "%q is not a SHA-256", s)
	}
	if _, err := hex.Decode(sum[:], []byte(s)); err != nil {
		return sum, thole.Errorf(thole.CodeInvalid, "%q is not a SHA-256", s)
	}
	return sum, nil
}

func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// IsZero reports whether s stands for none.
func (s Sum) IsZero() bool { return s == Sum{} }

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSum(string(text))
	return err
}
