package vault

import "time"

// Methods with which the home's owner is asked about secrets over its socket.
const (
	MethodSet    = "thole/secret/set"
	MethodList   = "thole/secret/list"
	MethodShow   = "thole/secret/show"
	MethodRevoke = "thole/secret/revoke"
	MethodTest   = "thole/secret/test"
	MethodRotate = "thole/secret/rotate_key"
)

// Params are the params of the methods. Name and owner choose an item.
type Params struct {
	Name     string    `json:"name,omitempty"`
	Owner    OwnerKind `json:"owner,omitempty"`
	Kind     Kind      `json:"kind,omitempty"`
	Provider string    `json:"provider,omitempty"`
	Value    []byte    `json:"value,omitempty"`
	Life     int64     `json:"expires_in,omitempty"`
	All      bool      `json:"all,omitempty"`
}

// Description is an item as a person sees it.
type Description struct {
	ID          string    `json:"id"`
	Owner       OwnerKind `json:"owner" enum:"user,project,app,platform"`
	OwnerID     string    `json:"owner_id,omitempty"`
	Name        string    `json:"name"`
	Kind        Kind      `json:"kind" enum:"provider_auth,git,mcp,env"`
	Provider    string    `json:"provider,omitempty"`
	State       State     `json:"state" enum:"active,needs_login,revoked"`
	ETag        string    `json:"etag"`
	Version     int64     `json:"version" doc:"of the value"`
	Fingerprint string    `json:"fingerprint" doc:"the same for the same value of one owner; it says nothing of the value"`
	CreatedBy   string    `json:"created_by"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	LastUsedAt  time.Time `json:"last_used_at,omitzero"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
}

// Describe is what may be shown of an item: all but its value, which is not in it.
func (i Item) Describe() Description {
	return Description{
		ID: string(i.ID), Owner: i.Owner.Kind, OwnerID: i.Owner.ID, Name: i.Name, Kind: i.Kind, Provider: i.Provider, State: i.State, ETag: i.ETag, Version: i.Version,
		Fingerprint: i.Fingerprint, CreatedBy: i.CreatedBy, CreatedAt: i.Created, UpdatedAt: i.Updated, LastUsedAt: i.Used, ExpiresAt: i.Expires,
	}
}

// Describe all.
func Describe(all []Item) []Description {
	out := make([]Description, 0, len(all))
	for _, i := range all {
		out = append(out, i.Describe())
	}
	return out
}

// Listed is the answer of MethodList: the items, and why the vault is locked, if it is.
type Listed struct {
	Items  []Description `json:"items"`
	Locked string        `json:"locked,omitempty"`
	Hint   string        `json:"hint,omitempty"`
}

// UseView is a use as a person sees it.
type UseView struct {
	At       time.Time `json:"at"`
	Purpose  string    `json:"purpose"`
	Thread   string    `json:"session_id,omitempty"`
	Turn     string    `json:"run_id,omitempty"`
	Executor string    `json:"executor_id,omitempty"`
}

// ChangeView is a change as a person sees it.
type ChangeView struct {
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Via     string    `json:"via"`
	Client  string    `json:"client,omitempty"`
	Event   string    `json:"event"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to"`
	Version int64     `json:"version"`
}

// Shown is the answer of MethodShow.
type Shown struct {
	Description
	Uses    []UseView    `json:"uses"`
	Changes []ChangeView `json:"changes"`
}

// DescribeUses and DescribeChanges make views.
func DescribeUses(all []Use) []UseView {
	out := make([]UseView, 0, len(all))
	for _, u := range all {
		out = append(out, UseView{At: u.At, Purpose: u.Purpose, Thread: string(u.Thread), Turn: string(u.Turn), Executor: string(u.Executor)})
	}
	return out
}

// DescribeChanges makes views of changes.
func DescribeChanges(all []Change) []ChangeView {
	out := make([]ChangeView, 0, len(all))
	for _, c := range all {
		out = append(out, ChangeView{At: c.At, Actor: c.Actor.Who(), Via: c.Actor.Via, Client: c.Actor.Client, Event: c.Event, From: c.From, To: c.To, Version: c.Version})
	}
	return out
}

// Tested is the answer of MethodTest.
type Tested struct {
	Found string `json:"found" doc:"what was tried and found"`
}
