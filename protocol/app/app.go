// Package app holds the wire types of the thread contract: the Codex app-server
// protocol as far as thole speaks it, and thole's own methods under thole/. It is
// data only. Servers and clients share it; neither adds meaning to it here.
//
// Unknown members of what a peer sends are ignored, so members may be added.
// Pointers and nil slices of a result are null on the wire unless their tag says
// that they are left out.
package app

import "encoding/json"

//go:generate go run github.com/tholehq/thole/scripts/gen/contract schema

// Extension is the key under capabilities.extensions with which a client declares
// that it understands thole/ methods, notifications and members.
const Extension = "thole"

// InitializeParams opens a connection.
type InitializeParams struct {
	ClientInfo   ClientInfo    `json:"clientInfo"`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
}

// ClientInfo names the program of a connection.
type ClientInfo struct {
	Name    string  `json:"name"`
	Title   *string `json:"title,omitempty"`
	Version string  `json:"version"`
}

// Capabilities belong to one connection, never to a thread.
type Capabilities struct {
	ExperimentalAPI bool `json:"experimentalApi,omitempty"`
	// OptOut names notifications that the client does not want.
	OptOut     []string                   `json:"optOutNotificationMethods,omitempty"`
	Extensions map[string]json.RawMessage `json:"extensions,omitempty"`
}

// InitializeResult says who answered. The first x.y.z in UserAgent is the version
// of the protocol.
type InitializeResult struct {
	UserAgent      string `json:"userAgent"`
	CodexHome      string `json:"codexHome"`
	PlatformFamily string `json:"platformFamily"`
	PlatformOS     string `json:"platformOs"`
	// Thole is there only for clients that declared the extension.
	Thole *ServerInfo `json:"thole,omitempty"`
}

// ServerInfo is what only a thole server can report.
type ServerInfo struct {
	Version string `json:"version"`
	Home    string `json:"home"`
}

// Empty is a result or params without members.
type Empty struct{}

// Page is the part that all paged results share.
type Page struct {
	NextCursor      *string `json:"nextCursor"`
	BackwardsCursor *string `json:"backwardsCursor"`
}

// ErrorData goes with every error that thole itself decides.
type ErrorData struct {
	// Code is the class of the error: invalid, not_found, conflict, busy, …
	Code string `json:"code"`
	Hint string `json:"hint,omitempty"`
}
