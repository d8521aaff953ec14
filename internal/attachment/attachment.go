// Package attachment owns the daemon's holds on app-servers: which server, proven
// by its process, serves which thread, since which epoch, and what a delivery into
// it may do.
//
// An attachment is live while its process is the one it was made with. An epoch
// counts provably continuous servers: a reconnect keeps it, another process ends
// it, and a thread whose server was replaced gets a higher one. Permissions are a
// cap taken at the start, and a delivery is allowed only while the present ones
// are within it.
//
// It holds rows, their states and what permissions say, and starts no process;
// package keeper does.
package attachment

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/procid"
)

// State of an attachment.
type State string

const (
	// Pending: its server runs and the foreground has not made its thread yet.
	Pending State = "pending"
	// Live: the foreground is there and deliveries may be made.
	Live State = "live"
	// Detached: the foreground is gone; what was accepted is followed to its end.
	Detached State = "detached"
	// Parked: nothing runs, but a held batch still waits for a human.
	Parked State = "parked"
	// Stale: its process is gone or cannot be proven to be the same.
	Stale State = "stale"
	// Retired: over. Kept for the record.
	Retired State = "retired"
)

// Kind says whose server it is.
type Kind string

const (
	Owned    Kind = "owned"    // started by us for this attachment
	Shared   Kind = "shared"   // the user's own Codex daemon
	Endpoint Kind = "endpoint" // an address the user named, with its process
)

// Trust is how far results may go without a human.
type Trust string

const (
	// StrictSafe delivers only what needs nothing, into a session that may do
	// nothing.
	StrictSafe Trust = "strict-safe"
	// TrustedAll delivers whatever the session's permissions are.
	TrustedAll Trust = "trusted-all"
)

// Attachment is one hold on an app-server.
type Attachment struct {
	ID      thole.AttachmentID
	User    thole.UserID
	Home    string // the Codex home: the endpoint of deliveries
	Thread  thole.ThreadID
	Kind    Kind
	Address string // unix://PATH or ws://…
	State   State
	Epoch   int64
	Process procid.Identity // of the server
	Client  procid.Identity // of the foreground; zero: none
	Dir     string
	Program string // the codex of a server we own

	Trust Trust
	// Wish is what the user said of each dimension; Cap is what the session was
	// first seen to allow, and Current what it was last seen to allow.
	Wish    Wishes
	Cap     *PermissionSnapshot
	Current *PermissionSnapshot
	// Pinned is set while a delivery holds the session's settings tighter than the
	// user's own.
	Pinned *Pin
	// Active is the running turn of the thread, as it was last seen; nil: none was.
	Active *ActiveTurn
	// Revision counts snapshots that differed from the one before.
	Revision int64
	// Note says why it is in its state, for people.
	Note string

	Created time.Time
	Updated time.Time
	Version int64
}

// Usable reports whether a delivery may be tried.
func (a *Attachment) Usable() bool { return a.State == Live && a.Thread != "" }

// Store keeps attachments.
type Store interface {
	// InsertAttachment fails with thole.CodeConflict if the thread has one that is
	// not retired.
	InsertAttachment(ctx context.Context, a *Attachment) error
	// UpdateAttachmentIf writes a if the stored version is a.Version, and raises
	// it. false: it was changed meanwhile.
	UpdateAttachmentIf(ctx context.Context, a *Attachment) (bool, error)
	Attachment(ctx context.Context, id thole.AttachmentID) (*Attachment, error) // nil: none
	// AttachmentOf is the one of a thread that is not retired, nil if none.
	AttachmentOf(ctx context.Context, user thole.UserID, home string, thread thole.ThreadID) (*Attachment, error)
	// Attachments lists, newest first; all includes retired ones.
	Attachments(ctx context.Context, all bool) ([]Attachment, error)
	// LastAttachment is the one of a thread with the highest epoch, in any state; nil
	// if it never had one.
	LastAttachment(ctx context.Context, user thole.UserID, home string, thread thole.ThreadID) (*Attachment, error)
}
