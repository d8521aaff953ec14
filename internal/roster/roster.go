// Package roster owns which servers have a store that several machines can reach: a server
// joins with the id of its home, renews its heartbeat by the database's time, drains and
// leaves. One whose heartbeat is older than DeadAfter counts as dead. Its executors may still
// run then: they are given up only after they have ended themselves.
//
// It refuses a server that would not share what the others have: one of a version that
// expects to be alone, or with other objects.
package roster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
)

// BeatEvery is how often a server renews its heartbeat, and DeadAfter how old one may be.
const (
	BeatEvery = 5 * time.Second
	DeadAfter = 20 * time.Second
)

// Protocol is what servers of one store must agree on; neighbours get along, so that servers
// can be replaced one after the other. 0 are those that expect to be alone.
const Protocol = 1

// Role is a part of the work of a server.
type Role string

const (
	API        Role = "api"        // answers people and their programs
	Dispatcher Role = "dispatcher" // runs turns
	Sweeper    Role = "sweeper"    // removes what is over
	Delivery   Role = "delivery"   // delivers results of jobs
)

// Roles are all of them.
func Roles() []Role { return []Role{API, Dispatcher, Sweeper, Delivery} }

// Server is one that joined.
type Server struct {
	ID      string
	Place   string // machine and directory of its home
	Run     string // of the process
	Address string // of its page
	// Peer is where other servers reach it, and Certificate the sum of what it shows there.
	Peer        string
	Certificate string
	Version     string
	Protocol    int
	Roles       []Role
	// Objects names where its objects are; it begins with LocalObjects for a directory.
	Objects string
	// Orphans is how long its executors outlive it.
	Orphans  time.Duration
	Joined   time.Time
	Beat     time.Time
	Draining bool
	Departed bool // it left, and did not die
	Alive    bool
}

// Has reports whether a server has a role.
func (s Server) Has(r Role) bool { return slices.Contains(s.Roles, r) }

// LocalObjects begins the name of objects that only one machine reaches.
const LocalObjects = "dir:"

// Engine names the local driver of a server: which executors are on its machine.
func Engine(server string) string { return "local:" + server }

// OfEngine is the id of the server that reaches an engine, "" where every server may.
func OfEngine(engine string) string {
	id, _ := strings.CutPrefix(engine, "local:")
	return id
}

// ErrReplaced: another process joined with the same id, so this one is no server any more.
var ErrReplaced = errors.New("another process serves the store in this one's place")

// Store keeps servers. Each call is one transaction; time is the database's.
type Store interface {
	// Join enters a server, in the place of an earlier process of the same home. What
	// Admit refuses changes nothing.
	Join(ctx context.Context, s Server) error
	// Beat renews the heartbeat; ErrReplaced if the row is no longer this process's.
	Beat(ctx context.Context, id, run string) error
	// Drain records that the server takes nothing new.
	Drain(ctx context.Context, id, run string) error
	// Leave ends the server at once; nothing if another process has the row.
	Leave(ctx context.Context, id, run string) error
	// List returns all, by id.
	List(ctx context.Context) ([]Server, error)
	// Take gives a duty to a holder for a while, if nobody else has it.
	Take(ctx context.Context, duty, holder string, life time.Duration) (bool, error)
	// Drop gives a duty back.
	Drop(ctx context.Context, duty, holder string) error
}

// Admit decides whether s may join those that are there.
func Admit(s Server, there []Server) error {
	for _, other := range there {
		switch {
		case !other.Alive:
		case other.ID == s.ID && other.Place == s.Place: // the lock of its home proves that it is gone
		case other.ID == s.ID:
			return thole.Errorf(thole.CodeConflict, "server %s is alive at %s: this home is a copy of that one", s.ID, other.Place).
				WithHint("remove server.id from the copy; or stop the other, and wait %s if it died", DeadAfter)
		case other.Protocol == 0:
			return thole.Errorf(thole.CodeConflict, "server %s at %s has this store, and its version %s expects to be alone", other.ID, other.Place, other.Version).
				WithHint("stop that one, or wait %s after it died; then start it with this version", DeadAfter)
		case other.Protocol-s.Protocol > 1 || s.Protocol-other.Protocol > 1:
			return thole.Errorf(thole.CodeConflict, "server %s at %s has version %s, too far from this one's %s", other.ID, other.Place, other.Version, s.Version).
				WithHint("replace servers one version after the other")
		case strings.HasPrefix(s.Objects, LocalObjects):
			return thole.Errorf(thole.CodeConflict, "server %s at %s has this store, and objects.kind is dir: the others would not reach this one's files", other.ID, other.Place).
				WithHint(`set objects.kind = "s3" on every server; one alone may keep a directory`)
		case strings.HasPrefix(other.Objects, LocalObjects):
			return thole.Errorf(thole.CodeConflict, "server %s at %s has this store and keeps objects in a directory: this one would not reach them", other.ID, other.Place).
				WithHint(`move its objects to S3 with thole db move, and set objects.kind = "s3" there`)
		case s.Objects != other.Objects:
			return thole.Errorf(thole.CodeConflict, "server %s keeps objects at %s, and this one at %s", other.ID, other.Objects, s.Objects).
				WithHint("objects.endpoint and objects.bucket must be the same on every server of a store")
		}
	}
	return nil
}
