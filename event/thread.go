package event

import (
	"slices"
	"time"

	thole "github.com/tholehq/thole"
)

// Created is what a thread is created with.
type Created struct {
	Owner      thole.Owner    `json:"owner"`
	Source     string         `json:"source,omitempty"`
	Files      *thole.Source  `json:"files,omitempty"` // nil: as of a thread of an earlier version
	Client     string         `json:"client,omitempty"`
	Ephemeral  bool           `json:"ephemeral,omitempty"`
	ForkedFrom thole.ThreadID `json:"forked_from,omitempty"`
	Parent     thole.ThreadID `json:"parent,omitempty"`
	Origin     string         `json:"origin,omitempty"`
	Retell     bool           `json:"retell,omitempty"`
	// Preview, Turns and Todos come with the history of a fork.
	Preview string `json:"preview,omitempty"`
	Turns   int    `json:"turns,omitempty"`
	Todos   []Todo `json:"todos,omitempty"`
	// Tools are its client's own. They never change.
	Tools []ClientTool `json:"tools,omitempty"`
}

// Git is where in a repository a client says that a thread works. "" is not known.
type Git struct {
	Sha    string `json:"sha,omitempty"`
	Branch string `json:"branch,omitempty"`
	Origin string `json:"origin,omitempty"`
}

// Cut is where a revert cuts a thread: Turn, which has Number, and all later ones are gone.
type Cut struct {
	Turn   thole.TurnID `json:"turn"`
	Number int          `json:"number"`
}

// Settings are a thread's sticky execution settings, or those of one turn.
type Settings struct {
	Provider     string            `json:"provider,omitempty"`
	Model        string            `json:"model,omitempty"`
	Effort       string            `json:"effort,omitempty"`
	Profile      thole.Profile     `json:"profile,omitempty"`
	Dir          string            `json:"dir,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Options      map[string]string `json:"options,omitempty"`
	// Network narrows what the thread's agents reach; nil: what the configuration allows.
	Network *NetworkPolicy `json:"network,omitempty"`
}

// OwnChoice as the model or the effort of settings that are laid over a thread's leaves it to
// the provider again.
const OwnChoice = "default"

// NetworkPolicy is a policy of the egress proxy, and with "list" the names that it lets
// through. A value is never changed, only replaced.
type NetworkPolicy struct {
	Policy string   `json:"policy" enum:"default,none,gateway,list,open"`
	Allow  []string `json:"allow,omitempty" maxItems:"256" doc:"example.com, *.example.com or example.com:443; of policy list"`
}

// Equal reports whether two policies are the same.
func (n *NetworkPolicy) Equal(other *NetworkPolicy) bool {
	if n == nil || other == nil {
		return n == other
	}
	return n.Policy == other.Policy && slices.Equal(n.Allow, other.Allow)
}

// Status is derived from (loaded, open turn, pending asks, last outcome).
type Status struct {
	Loaded            bool
	Active            bool
	WaitingOnApproval bool
	WaitingOnInput    bool
	SystemError       bool
}

// Message is a queued message, or one given to a running turn.
type Message struct {
	ID       thole.MessageID
	Thread   thole.ThreadID
	Input    []thole.Input
	ClientID string
	Actor    thole.Actor
	Created  time.Time
	// Waits says that the running turn keeps the message for its end instead of giving it
	// to the agent.
	Waits bool `json:",omitempty"`
	// Back says that the sender keeps the message too, until an agent has it, and takes it
	// back when a user stops the turn.
	Back bool `json:",omitempty"`
}
