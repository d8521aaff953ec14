package wire

import (
	"encoding/json"
	"time"
)

// Methods for host plugins. Unlike the others they are a contract with other programs:
// docs/plugins.md.
const (
	PluginHello      = "plugin/hello"
	AppServerEnsure  = "app_server/ensure"
	AppServerRefresh = "app_server/refresh"
	AppServerStop    = "app_server/stop"
	DeliveryEnqueue  = "delivery/enqueue"
	DeliveryInspect  = "delivery/inspect"
)

// PluginHelloParams introduce the process at the other end of a connection.
type PluginHelloParams struct {
	Name     string `json:"name"`
	Instance string `json:"instance_id"`
	Release  string `json:"release"`
	PID      int    `json:"pid"`
}

type PluginWelcome struct {
	// Protocol is of these methods, Version of thole.
	Protocol     int      `json:"protocol_version"`
	Version      string   `json:"version"`
	Instance     string   `json:"instance_id"`
	Capabilities []string `json:"service_capabilities"`
	LeaseSeconds int      `json:"lease_seconds"`
}

// ServerProfile is what an app-server is started with and what may be delivered into it.
type ServerProfile struct {
	CodexBinary   string `json:"codex_binary,omitempty"`
	CodexHome     string `json:"codex_home,omitempty"`
	Dir           string `json:"cwd,omitempty"`
	Trust         string `json:"auto_delivery_policy,omitempty"`
	AllowApproval string `json:"session_allows_approval,omitempty"`
	AllowNetwork  string `json:"session_allows_network,omitempty"`
	AllowWrite    string `json:"session_allows_write_access,omitempty"`
}

type EnsureParams struct {
	ThreadID string `json:"source_thread_id"`
	ServerProfile
	// Env is the server's environment and is not kept; by default it is the daemon's.
	Env []string `json:"env,omitempty"`
}

type AppServerParams struct {
	LeaseID string `json:"app_server_lease_id"`
}

// AppServerLease is a hold on an app-server that thole runs.
type AppServerLease struct {
	LeaseID   string    `json:"app_server_lease_id"`
	SessionID string    `json:"managed_session_id"`
	Epoch     int64     `json:"session_epoch"`
	ThreadID  string    `json:"bound_thread_id"`
	CodexHome string    `json:"codex_home"`
	Address   string    `json:"address"`
	ServerPID int       `json:"server_pid,omitempty"`
	State     string    `json:"state"`
	Until     time.Time `json:"lease_until,omitzero"`
}

// EnqueueTarget names a leased server, or what a server of the delivery's own is started
// with.
type EnqueueTarget struct {
	LeaseID string `json:"app_server_lease_id,omitempty"`
	// SessionID and Epoch are what the plugin believes of its lease; they find nothing.
	SessionID string `json:"managed_session_id,omitempty"`
	Epoch     int64  `json:"session_epoch,omitempty"`
	ServerProfile
}

type EnqueueParams struct {
	Key        string          `json:"idempotency_key"`
	ThreadID   string          `json:"source_thread_id"`
	TaskKind   string          `json:"task_kind,omitempty"`
	Summary    string          `json:"summary,omitempty"`
	Payload    string          `json:"payload,omitempty"`
	ResultFile string          `json:"result_file,omitempty"`
	Failed     bool            `json:"failed,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Policy     Policy          `json:"policy"`
	Target     EnqueueTarget   `json:"target"`
}

// PluginTarget is what a delivery was resolved to when it was taken.
type PluginTarget struct {
	Ownership   string `json:"ownership" enum:"explicit_lease,delivery_owned"`
	LeaseID     string `json:"app_server_lease_id"`
	SessionID   string `json:"managed_session_id"`
	ThreadID    string `json:"bound_thread_id"`
	Epoch       int64  `json:"session_epoch"`
	CodexBinary string `json:"codex_binary,omitempty"`
	Plugin      string `json:"plugin"`
	Key         string `json:"idempotency_key"`
}

// Enqueued is the answer to enqueue.
type Enqueued struct {
	Key          string       `json:"idempotency_key"`
	JobID        string       `json:"job_id"`
	BatchID      string       `json:"batch_id,omitempty"`
	AcceptedAt   time.Time    `json:"accepted_at"`
	Deduplicated bool         `json:"deduplicated"`
	Target       PluginTarget `json:"target"`
	Delivery     Forecast     `json:"delivery"`
}

type DeliveryInspectParams struct {
	Key string `json:"idempotency_key"`
}

// DeliveryState is all that is known of a delivery.
type DeliveryState struct {
	Key string `json:"idempotency_key"`
	// State is pending, in_flight, held, delivered or closed.
	State  string       `json:"state" enum:"pending,in_flight,held,delivered,closed"`
	Target PluginTarget `json:"target"`
	Job    Job          `json:"job"`
}
