// Package plugin owns what a home knows of the plugins that it serves: which process
// speaks for which instance of which plugin, and which app-servers each holds, until when.
// It gives the ids that are derived from a plugin's own words. It starts nothing and reaches
// nobody; the daemon does.
package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/procid"
)

// Capabilities of the service, in the words of its handshake.
const (
	// CapabilityDriver: results go to a leased app-server.
	CapabilityDriver = "delivery-driver-codex-app-server-v1"
	// CapabilityOwned: a delivery can bring its app-server.
	CapabilityOwned = "delivery-owned-codex-app-server-target-v1"
)

// Instance is one process that speaks for a plugin. Its id is the plugin's choice and means
// nothing once the process is gone.
type Instance struct {
	User    thole.UserID
	Plugin  string
	ID      string
	Release string
	Process procid.Identity
	HelloAt time.Time
}

// Lease is an instance's hold on an app-server, bound to one thread.
type Lease struct {
	ID         string
	User       thole.UserID
	Plugin     string
	Instance   string
	Endpoint   string // the Codex home
	Thread     thole.ThreadID
	Attachment thole.AttachmentID
	Until      time.Time
}

// Of reports whether the lease is this instance's.
func (l *Lease) Of(in *Instance) bool {
	return l != nil && l.User == in.User && l.Plugin == in.Plugin && l.Instance == in.ID
}

// Store keeps instances and leases. All methods are one durable step or none, and may be
// repeated.
type Store interface {
	// PutInstance records who speaks for an instance. false: another process does, which
	// is not gone by the caller's word.
	PutInstance(ctx context.Context, in Instance, gone func(procid.Identity) bool) (bool, error)
	// Instances lists all, by plugin and id.
	Instances(ctx context.Context) ([]Instance, error)
	// ForgetInstance removes one whose process is still this one, and its leases.
	ForgetInstance(ctx context.Context, in Instance) error

	// PutLease records a lease, or moves the one of the same id.
	PutLease(ctx context.Context, l Lease) error
	Lease(ctx context.Context, id string) (*Lease, error) // nil: none
	// Leases lists all, the first to end first.
	Leases(ctx context.Context) ([]Lease, error)
	DropLease(ctx context.Context, id string) error
}

// Domains keep ids apart that are derived from the same words.
const (
	domainInstanceLease = "thole: lease of a plugin instance, 1"
	domainOwnedLease    = "thole: lease of a delivery-owned server, 1"
	domainOwnedSession  = "thole: session of a delivery-owned server, 1"
	domainJob           = "thole: job of a plugin, 1"
)

// InstanceLease is the id of an instance's lease on the server of a thread.
func InstanceLease(in *Instance, endpoint string, thread thole.ThreadID) string {
	return derive(domainInstanceLease, string(in.User), in.Plugin, in.ID, endpoint, string(thread))
}

// OwnedLease and OwnedSession are the ids of the server that a delivery brings. No instance
// goes into them: the plugin's next process finds the same server.
func OwnedLease(user thole.UserID, plugin string, thread thole.ThreadID, key string) string {
	return derive(domainOwnedLease, string(user), plugin, string(thread), key)
}

// OwnedSession is the session of the same server.
func OwnedSession(user thole.UserID, plugin string, thread thole.ThreadID, key string) thole.AttachmentID {
	return thole.AttachmentID(derive(domainOwnedSession, string(user), plugin, string(thread), key))
}

// Job is the job of a plugin's key: the same key is the same job.
func Job(user thole.UserID, plugin, key string) thole.JobID {
	return thole.JobID(derive(domainJob, string(user), plugin, key))
}

// derive makes a UUID of a domain and words. Lengths go in, so that no two lists of words
// are the same bytes.
func derive(domain string, words ...string) string {
	h := sha256.New()
	for _, w := range append([]string{domain}, words...) {
		n := len(w)
		h.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		h.Write([]byte(w))
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: of our own making
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
