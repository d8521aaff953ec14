package vault

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is what a secret shows to everything that prints.
const redacted = "[secret]"

// Secret is an opened value. It prints as [secret] in every format. The bytes are
// returned by a function, because fmt looks into unexported fields, also through pointers,
// without asking their methods: inside of other values it prints as an address.
type Secret struct{ value func() *[]byte }

func newSecret(b []byte) Secret { return Secret{func() *[]byte { return &b }} }

// Bytes is the value itself, valid until Wipe.
func (s Secret) Bytes() []byte {
	if s.value == nil {
		return nil
	}
	return *s.value()
}

// Wipe overwrites the value. Copies that were made of it are their makers' to wipe.
func (s Secret) Wipe() {
	if s.value != nil {
		b := s.value()
		clear(*b)
		*b = nil
	}
}

func (Secret) String() string                 { return redacted }
func (Secret) GoString() string               { return redacted }
func (Secret) Format(f fmt.State, _ rune)     { _, _ = io.WriteString(f, redacted) }
func (Secret) MarshalJSON() ([]byte, error)   { return []byte(`"` + redacted + `"`), nil }
func (Secret) MarshalText() ([]byte, error)   { return []byte(redacted), nil }
func (Secret) LogValue() slog.Value           { return slog.StringValue(redacted) }
func (Secret) MarshalBinary() ([]byte, error) { return []byte(redacted), nil }
