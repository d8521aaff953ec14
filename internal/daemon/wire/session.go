package wire

import "time"

// Methods about sessions of Codex terminals.
const (
	SessionOpen    = "thole/session/open"
	SessionLeave   = "thole/session/leave"
	SessionList    = "thole/session/list"
	SessionInspect = "thole/session/inspect"
)

// SessionOpenParams asks for a hold on an app-server. The environment is that of
// the user's terminal and is given to the server only; it is not kept.
type SessionOpenParams struct {
	CodexHome      string   `json:"codex_home"`
	ThreadID       string   `json:"thread_id,omitempty"`
	Dir            string   `json:"dir"`
	Program        string   `json:"program,omitempty"`
	Env            []string `json:"env,omitempty"`
	ClientPID      int      `json:"client_pid,omitempty"`
	Trust          string   `json:"auto_delivery_policy,omitempty"`
	AllowApproval  string   `json:"session_allows_approval,omitempty"`
	AllowNetwork   string   `json:"session_allows_network,omitempty"`
	AllowWrite     string   `json:"session_allows_write_access,omitempty"`
	PinPermissions bool     `json:"pin_permissions,omitempty"`
	// Kind is owned, shared or endpoint; the latter two name a running server.
	Kind      string `json:"kind"`
	Address   string `json:"address,omitempty"`
	ServerPID int    `json:"server_pid,omitempty"`
}

type SessionParams struct {
	SessionID string `json:"managed_session_id"`
}

type SessionListParams struct {
	All bool `json:"all,omitempty"`
}

// CodexSession is a terminal with its attachment, as people see it.
type CodexSession struct {
	ID          string `json:"managed_session_id"`
	State       string `json:"state"`
	Kind        string `json:"kind"`
	ThreadID    string `json:"bound_thread_id"`
	CodexHome   string `json:"codex_home"`
	Address     string `json:"address"`
	Epoch       int64  `json:"session_epoch"`
	ServerPID   int    `json:"server_pid"`
	ServerAlive bool   `json:"server_alive"`
	ClientPID   int    `json:"client_pid,omitempty"`
	Trust       string `json:"auto_delivery_policy"`
	Pins        bool   `json:"pin_permissions,omitempty"`
	Pinned      bool   `json:"permissions_pinned,omitempty"` // now, by a delivery
	// Startup is the cap, Current what was last seen, Effective both.
	Startup   *Permissions `json:"startup_permissions,omitempty"`
	Current   *Permissions `json:"current_permissions,omitempty"`
	Effective *Permissions `json:"effective_permissions,omitempty"`
	Revision  int64        `json:"permission_snapshot_revision"`
	Drift     string       `json:"drift,omitempty"`
	Note      string       `json:"note,omitempty"`
	// Active is the running turn as it was last seen.
	Active *ActiveTurn `json:"active_turn,omitempty"`
	// Problem is why nothing can be delivered now, Next what to type.
	Problem   string    `json:"problem,omitempty"`
	Next      string    `json:"next,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// ActiveTurn is what decides whether a delivery could go into a running turn. Needs are
// true, false or unknown.
type ActiveTurn struct {
	Turn      string    `json:"active_turn_id"`
	Kind      string    `json:"active_turn_kind"`
	Approval  string    `json:"active_turn_requires_approval"`
	Network   string    `json:"active_turn_requires_network"`
	Write     string    `json:"active_turn_requires_write_access"`
	Risk      string    `json:"active_turn_risk_class"`
	Steerable bool      `json:"active_turn_steerable"`
	Epoch     int64     `json:"session_epoch"`
	At        time.Time `json:"seen_at"`
}

type Permissions struct {
	Approval bool     `json:"session_allows_approval"`
	Network  bool     `json:"session_allows_network"`
	Write    bool     `json:"session_allows_write_access"`
	Roots    []string `json:"writable_roots,omitempty"`
	Policy   string   `json:"approval_policy,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"`
}
