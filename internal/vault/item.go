package vault

import (
	"regexp"
	"slices"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
)

// ItemID names an item.
type ItemID string

// Kind is what a secret is for.
type Kind string

const (
	ProviderAuth Kind = "provider_auth" // an agent CLI's whole login file, or an API key
	Git          Kind = "git"
	MCP          Kind = "mcp"
	Env          Kind = "env"
)

// Kinds are all kinds.
var Kinds = []Kind{ProviderAuth, Git, MCP, Env}

// OwnerKind is whose a secret is.
type OwnerKind string

const (
	OfUser     OwnerKind = "user"
	OfProject  OwnerKind = "project"
	OfApp      OwnerKind = "app"
	OfPlatform OwnerKind = "platform"
)

// OwnerKinds are all owners, in the order in which Find asks them.
var OwnerKinds = []OwnerKind{OfUser, OfProject, OfApp, OfPlatform}

// Owner is whose a secret is; the platform has no id.
type Owner struct {
	Kind OwnerKind
	ID   string
}

// ownersOf are the owners whose secrets serve what o owns, nearest first.
func ownersOf(o thole.Owner) []Owner {
	return []Owner{{OfUser, string(o.User)}, {OfProject, string(o.Project)}, {OfApp, string(o.App)}, {OfPlatform, ""}}
}

// OwnerOf is the owner of one kind that a person's things have.
func OwnerOf(kind OwnerKind, o thole.Owner) (Owner, error) {
	for _, one := range ownersOf(o) {
		if one.Kind == kind {
			return one, nil
		}
	}
	return Owner{}, thole.Errorf(thole.CodeInvalid, "invalid owner %q", kind).WithHint("it is user, project, app or platform")
}

// State is where an item is in its life.
type State string

const (
	Active State = "active"
	// NeedsLogin: the provider refuses the login; a new value makes it active.
	NeedsLogin State = "needs_login"
	// Revoked is the end: the value is erased, the name is free, the trail stays.
	Revoked State = "revoked"
)

// moves are the legal transitions, by what happens to an item.
var moves = map[string]map[State]State{
	eventReplace: {Active: Active, NeedsLogin: Active},
	eventMark:    {Active: NeedsLogin},
	eventRevoke:  {Active: Revoked, NeedsLogin: Revoked},
}

const (
	eventCreate  = "item.create"
	eventReplace = "item.replace"
	eventMark    = "item.needs_login"
	eventRevoke  = "item.revoke"
	eventRewrap  = "key.rewrap"
)

// Item is a secret without its value.
type Item struct {
	ID       ItemID
	Owner    Owner
	Name     string
	Kind     Kind
	Provider string // whom a provider_auth is for; of the others, a host or service
	State    State
	ETag     string // another with each change
	Version  int64  // of the value
	// Fingerprint is equal for equal values of one owner. It is keyed, so
	// that it helps nobody to guess a value.
	Fingerprint string
	CreatedBy   string
	Created     time.Time
	Updated     time.Time
	Used        time.Time // zero: never
	Expires     time.Time // zero: never
}

// move is the item after an event, which the state it is in must permit.
func (i Item) move(event, etag string, now time.Time) (Item, error) {
	to, ok := moves[event][i.State]
	if !ok {
		return i, thole.Errorf(thole.CodeConflict, "secret %s is %s", i.Name, i.State)
	}
	i.State, i.ETag, i.Updated = to, etag, now
	return i, nil
}

var (
	nameForm     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`) })
	providerForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`) })
	serverForm   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([a-z0-9][a-z0-9._-]{0,127}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?$`)
	})
)

const (
	// MaxValue bounds one value; login files are a few KiB.
	MaxValue = 256 << 10
	// maxItems bounds the live items of one owner.
	maxItems = 200
)

func validate(n NewItem, now time.Time) error {
	switch {
	case !nameForm().MatchString(n.Name):
		return thole.Errorf(thole.CodeInvalid, "invalid name %q of a secret", n.Name).WithHint("letters, digits and . _ - , at most 128, the first a letter or a digit")
	case !slices.Contains(Kinds, n.Kind):
		return thole.Errorf(thole.CodeInvalid, "invalid kind %q of a secret", n.Kind).WithHint("it is provider_auth, git, mcp or env")
	case n.Kind == ProviderAuth && n.Provider == "":
		return thole.Errorf(thole.CodeInvalid, "a secret of kind %s needs a provider", ProviderAuth).WithHint("name the agent or the service that it logs in to")
	case n.Kind == Git && n.Provider != "" && !serverForm().MatchString(n.Provider):
		return thole.Errorf(thole.CodeInvalid, "invalid server %q of a secret", n.Provider).WithHint("a server's name in lower case, with its port if the address has one: git.example.com:8443")
	case n.Kind != Git && n.Provider != "" && !providerForm().MatchString(n.Provider):
		return thole.Errorf(thole.CodeInvalid, "invalid provider %q of a secret", n.Provider).WithHint("lower-case letters, digits and . _ -")
	case !n.Expires.IsZero() && !now.Before(n.Expires):
		return thole.Errorf(thole.CodeInvalid, "a secret expires in the future, or never")
	}
	return checkSize(n.Value)
}

func checkSize(value []byte) error {
	if len(value) == 0 {
		return thole.Errorf(thole.CodeInvalid, "the secret is empty")
	}
	if len(value) > MaxValue {
		return thole.Errorf(thole.CodeInvalid, "the secret is longer than %d bytes", MaxValue)
	}
	return nil
}
