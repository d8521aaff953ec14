package event

import (
	"time"

	thole "github.com/tholehq/thole"
)

// Created is what a thread is created with.
type Created struct {
	Owner      thole.Owner    `json:"owner"`
	Source     string         `json:"source,omitempty"`
	Client     string         `json:"client,omitempty"`
	Ephemeral  bool           `json:"ephemeral,omitempty"`
	ForkedFrom thole.ThreadID `json:"forked_from,omitempty"`
	Parent     thole.ThreadID `json:"parent,omitempty"`
	Origin     string         `json:"origin,omitempty"`
	// Preview, Turns and Todos come with the history of a fork.
	Preview string `json:"preview,omitempty"`
	Turns   int    `json:"turns,omitempty"`
	Todos   []Todo `json:"todos,omitempty"`
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
}
