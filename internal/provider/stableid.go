package provider

import (
	"crypto/sha256"
	"encoding/hex"
)

// StableID makes an id that is the same for the same parts: a version 8 UUID
// over their hash. Drivers derive item, ask and event ids from a turn's id and
// the CLI's own ids with it, so that a fact read twice has one id.
func StableID[T ~string](parts ...string) T {
	var room [256]byte // most ids need no more, and so no garbage
	text := room[:0]
	for _, p := range parts {
		text = append(append(text, p...), 0)
	}
	return idOf[T](text)
}

// idOf is StableID for parts that end in a zero byte each.
func idOf[T ~string](text []byte) T {
	sum := sha256.Sum256(text)
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return T(s[:])
}
