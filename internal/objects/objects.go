// Package objects is the port to the place where files outlive executors. A
// store holds immutable bytes under keys; which of them matter is written in
// rows, never in the store. A process that moves bytes without being trusted with the
// store's credentials (executord above all) gets signed links, one per object.
//
// It refuses keys that were not built from checked segments: nothing of a
// user's naming can climb out of its prefix.
package objects

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
)

// ErrNotFound says that there is no object under a key.
var ErrNotFound = errors.New("objects: no such object")

// ErrAway says that the store as a whole cannot be reached or used now. What needs
// it waits.
var ErrAway = errors.New("the object store is away")

// Info describes one object.
type Info struct {
	Key      string
	Size     int64
	ETag     string
	Modified time.Time
}

// Link is a signed permission to move one object. Headers must be sent as they
// are. It ends by itself.
type Link struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
}

// Store keeps objects. All methods are safe for concurrent use and idempotent.
// An error other than ErrNotFound (wrapped) or CodeInvalid says nothing about
// whether the call had an effect.
type Store interface {
	// Put stores size bytes of body under key, all or nothing, durable when it
	// returns. An object that is there is replaced.
	Put(ctx context.Context, key string, body io.Reader, size int64) error
	// Get reads n bytes from off, with n < 0 all that follow.
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)
	Stat(ctx context.Context, key string) (Info, error)
	// List returns up to limit objects below prefix whose keys follow after,
	// in key order.
	List(ctx context.Context, prefix, after string, limit int) ([]Info, error)
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error

	// SignGet links to reading key, whole or by range.
	SignGet(ctx context.Context, key string, ttl time.Duration) (Link, error)
	// SignPut links to storing key once as size bytes with this SHA-256. The
	// store refuses anything else.
	SignPut(ctx context.Context, key string, size int64, sum Sum, ttl time.Duration) (Link, error)
}

// PartSize is the size of every part of an object but the last.
const PartSize = 64 << 20

// Parts is what a store offers for objects too large for one Put.
type Parts interface {
	// BeginParts opens an upload, SignPart links to storing one of its parts
	// (from 1), EndParts makes the object of them, and AbortParts forgets it.
	BeginParts(ctx context.Context, key string) (upload string, err error)
	SignPart(ctx context.Context, key, upload string, number int, size int64, sum Sum, ttl time.Duration) (Link, error)
	EndParts(ctx context.Context, key, upload string, parts []Part) error
	AbortParts(ctx context.Context, key, upload string) error
}

// Part is one stored part: what the store answered when it took it.
type Part struct {
	Number int    `json:"number"`
	ETag   string `json:"etag"`
	Size   int64  `json:"size"`
	Sum    Sum    `json:"sum"`
}

// Key joins segments into a key. A segment that could change the meaning of its
// neighbours is refused.
func Key(segments ...string) (string, error) {
	for _, s := range segments {
		if err := checkSegment(s); err != nil {
			return "", err
		}
	}
	return strings.Join(segments, "/"), nil
}

// CheckKey reports whether a key is one that Key could have made.
func CheckKey(key string) error {
	if len(key) > 1024 {
		return thole.Errorf(thole.CodeInvalid, "object key is longer than 1024 bytes")
	}
	for s := range strings.SplitSeq(key, "/") {
		if err := checkSegment(s); err != nil {
			return err
		}
	}
	return nil
}

func checkSegment(s string) error {
	bad := s == "" || s == "." || s == ".." || len(s) > 255 || !utf8.ValidString(s) ||
		strings.ContainsFunc(s, func(r rune) bool { return r == '/' || r == '\\' || r < ' ' || r == 0x7f })
	if bad {
		return thole.Errorf(thole.CodeInvalid, "%q cannot be part of an object key", s)
	}
	return nil
}
