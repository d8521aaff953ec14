// Package thole is the glossary as code: the ids, nouns, states, outcomes and
// errors that every other package speaks. It imports the standard library only
// and does nothing: machines own transitions, servers own wires, store owns rows.
//
// State is persisted and changes only by a named transition. Phase is a turn's
// persisted progress through the pipeline. Status is derived for a client and
// never stored.
package thole

import "time"

// Actor is who asks. It is made once at the edge (a socket's peer uid, a session
// cookie, a token) and passed down as a value. The zero Actor may do nothing.
type Actor struct {
	User UserID `json:"user"`
	// Via names the edge that authenticated the actor: "socket", "listener", "cookie",
	// "token", "system"; "agent" is what acts inside an executor and is nobody.
	Via string `json:"via,omitempty"`
	// Client is the program of the connection, for the audit trail only.
	Client string `json:"client,omitempty"`
}

// ThreadOfAgent is the source of a thread that the agent of another one, its parent,
// started: it has its parent's owner, counts in its parent's budget, and starts none itself.
const ThreadOfAgent = "agent"

// Valid reports whether the actor was authenticated by some edge.
func (a Actor) Valid() bool { return a.User != "" && a.Via != "" }

// Owner places a row: every thread, turn, job and file carries all three from
// the first migration on.
type Owner struct {
	App     AppID     `json:"app"`
	Project ProjectID `json:"project"`
	User    UserID    `json:"user"`
}

// The rows that exist in every new store, so that one user and many take the
// same path.
const (
	DefaultApp     AppID     = "00000000-0000-7000-8000-000000000001"
	DefaultProject ProjectID = "00000000-0000-7000-8000-000000000002"
	LocalUser      UserID    = "00000000-0000-7000-8000-000000000003"
	SystemUser     UserID    = "00000000-0000-7000-8000-000000000004"
)

// DefaultOwner is the place of everything made by the local user.
var DefaultOwner = Owner{App: DefaultApp, Project: DefaultProject, User: LocalUser}

// LocalActor is the user of this machine, proven by socket peer credentials.
var LocalActor = Actor{User: LocalUser, Via: "socket"}

// ListenerActor is a client of a listener that the user opened for programs which may be
// on other machines: it acts for the user, and is not at this machine.
var ListenerActor = Actor{User: LocalUser, Via: "listener"}

// SystemActor acts for the program itself: sweeps, dispatchers, deliveries.
var SystemActor = Actor{User: SystemUser, Via: "system"}

// AgentActor is an agent in its executor. It is no user, so it may do nothing and
// nothing it did is a person's.
var AgentActor = Actor{Via: "agent", Client: "agent"}

// Who names the one who acted: "agent" and "system" are no person, whatever user
// they act for.
func (a Actor) Who() string {
	if a.Via == AgentActor.Via || a.Via == SystemActor.Via {
		return a.Via
	}
	return string(a.User)
}

// Person reports whether a user acted, and no program for one.
func (a Actor) Person() bool { return a.Valid() && a.Who() == string(a.User) }

// Millis is the wire and row form of time: Unix milliseconds, UTC.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// FromMillis is the inverse of Millis; zero stays the zero time.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
