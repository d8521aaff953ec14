package vault

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
)

// Store keeps the rows. Every method is one transaction; a change goes in together
// with its audit row. A compare-and-set that does not find its ETag, or its state,
// returns thole.CodeConflict.
type Store interface {
	Key(ctx context.Context, o Owner) (k Key, found bool, err error)
	Keys(ctx context.Context) ([]Key, error)
	// AddKey adds an owner's data key unless there is one, and returns the one there is.
	AddKey(ctx context.Context, k Key) (Key, error)
	// RewrapKeyIf replaces what k was wrapped in, if it still is as in was.
	RewrapKeyIf(ctx context.Context, was, k Key, c Change) error

	// AddItem refuses with thole.CodeConflict a name that the owner has, and a key that
	// is gone; with thole.CodeOverloaded beyond limit live items of the owner.
	AddItem(ctx context.Context, i Item, key string, s Sealed, limit int, c Change) error
	// ReplaceItemIf stores a new value and state if the ETag is still was.
	ReplaceItemIf(ctx context.Context, was string, i Item, s Sealed, c Change) error
	// MarkItemIf stores a new state if the ETag is still was.
	MarkItemIf(ctx context.Context, was string, i Item, c Change) error
	// RevokeItemIf erases the value if the ETag is still was, and the owner's data key
	// with the owner's last value.
	RevokeItemIf(ctx context.Context, was string, i Item, c Change) error

	Item(ctx context.Context, id ItemID) (i Item, found bool, err error)
	// Items lists, oldest first.
	Items(ctx context.Context, f Filter) ([]Item, error)
	// Stored reads what it takes to open an item, in one snapshot. Used says that this
	// use is recorded already; there are no values of a revoked item.
	Stored(ctx context.Context, id ItemID, u Use) (s Stored, found bool, err error)
	// UseItemIf records a use of the item, if its ETag is still etag.
	UseItemIf(ctx context.Context, id ItemID, etag string, u Use) error
	// Uses and Changes list the latest first, at most limit.
	Uses(ctx context.Context, id ItemID, limit int) ([]Use, error)
	Changes(ctx context.Context, subject string, limit int) ([]Change, error)
}

// Stored is an item with its sealed value.
type Stored struct {
	Item   Item
	Key    Key
	Sealed Sealed
	Used   bool
}

// Filter chooses items: those of any of the owners. Empty members choose all.
type Filter struct {
	Owners   []Owner
	Name     string
	Kind     Kind
	Provider string
	Revoked  bool // also revoked ones
}

// Use is one use of a value. Of a turn it is recorded once for each purpose.
type Use struct {
	Thread   thole.ThreadID
	Turn     thole.TurnID
	Executor thole.ExecutorID
	Purpose  string // what opened it: "gateway", "test", …
	At       time.Time
}

// Change is an audit row of an item or of a data key.
type Change struct {
	Subject  string // id of the item or the key
	At       time.Time
	Actor    thole.Actor
	Event    string
	From, To string // states, or keys that wrap
	Version  int64
}
