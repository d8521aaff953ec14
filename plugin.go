package thole

// TargetOwnership says whose app-server a plugin's result is delivered by.
type TargetOwnership string

const (
	// OwnershipExplicit: a server that the plugin leased before, bound to the thread.
	OwnershipExplicit TargetOwnership = "explicit_lease"
	// OwnershipDelivery: a server that is started for the delivery alone, once its
	// barrier is durable.
	OwnershipDelivery TargetOwnership = "delivery_owned"
)

// PluginTarget is what a plugin's result is delivered by, as it was resolved when the
// result was taken. It is kept with the job, so that a daemon that takes the delivery up again
// needs nothing of the plugin.
type PluginTarget struct {
	Ownership TargetOwnership `json:"ownership"`
	Plugin    string          `json:"plugin"`
	Key       string          `json:"idempotency_key"`
	// Digest is of everything the plugin asked for: the same key with another request is
	// a mistake of the plugin's.
	Digest  string       `json:"digest"`
	Lease   string       `json:"app_server_lease_id"`
	Session AttachmentID `json:"managed_session_id"`
	Thread  ThreadID     `json:"bound_thread_id"`
	Epoch   int64        `json:"session_epoch"`

	// What a server of the delivery's own is started with.
	Program  string `json:"codex_binary,omitempty"`
	Dir      string `json:"cwd,omitempty"`
	Trust    string `json:"auto_delivery_policy,omitempty"`
	Approval string `json:"session_allows_approval,omitempty"`
	Network  string `json:"session_allows_network,omitempty"`
	Write    string `json:"session_allows_write_access,omitempty"`
}

// Shares reports whether two results may travel in one delivery: those that bring a server
// share it with results that would start the same one, and others bring none.
func (t *PluginTarget) Shares(o *PluginTarget) bool {
	if !t.Owned() || !o.Owned() {
		return t.Owned() == o.Owned()
	}
	return t.Plugin == o.Plugin && t.Program == o.Program && t.Dir == o.Dir && t.Trust == o.Trust &&
		t.Approval == o.Approval && t.Network == o.Network && t.Write == o.Write
}

// Owned reports whether the delivery starts the server itself.
func (t *PluginTarget) Owned() bool { return t != nil && t.Ownership == OwnershipDelivery }
