package thole

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Ids are UUIDv7 strings, one Go type per noun. They carry no prefix because
// real Codex clients parse thread ids as UUIDs.
type (
	AppID        string
	ProjectID    string
	UserID       string
	ThreadID     string
	TurnID       string
	ItemID       string
	EventID      string
	AskID        string
	TodoID       string
	MessageID    string // a queued message
	ExecutorID   string
	JobID        string
	ArtifactID   string
	BatchID      string
	AttemptID    string
	AttachmentID string
)

// NewID returns a UUIDv7 for now. Machines never call it: ids are made at the
// edge and passed in, so that a replay of the same inputs gives the same rows.
func NewID[T ~string](now time.Time) T {
	var b [16]byte
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(b[:6], ms[2:])
	rand.Read(b[6:]) // never fails: crypto/rand aborts the program instead
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return T(formatUUID(b))
}

// ValidUUID reports whether s is a UUID in its canonical lower-case form, the
// only form in which a caller may choose an id.
func ValidUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

func formatUUID(b [16]byte) string {
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}
