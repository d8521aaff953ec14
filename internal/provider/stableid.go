package provider

import (
	"crypto/sha256"
	"strings"

	"github.com/google/uuid"
)

// StableID makes an id that is the same for the same parts: a version 8 UUID
// over their hash. Drivers derive item, ask and event ids from a turn's id and
// the CLI's own ids with it, so that a fact read twice has one id.
func StableID[T ~string](parts ...string) T {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00") + "\x00"))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return T(uuid.UUID(sum[:16]).String())
}
