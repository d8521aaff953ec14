package session

import "time"

// Methods with which the home's owner is asked for tokens and logins over its
// socket.
const (
	MethodTokenCreate = "thole/token/create"
	// MethodServiceToken makes one for a service.
	MethodServiceToken = "thole/token/service"
	MethodTokenList    = "thole/token/list"
	MethodTokenRevoke  = "thole/token/revoke"
	MethodLoginList    = "thole/login/list"
	MethodLoginRevoke  = "thole/login/revoke"
)

// Description is a token as its owner sees it. Secret is there only when the
// token was just made.
type Description struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Scope      Scope     `json:"scope" enum:"jobs,read,act,admin"`
	MadeWith   string    `json:"made_with,omitempty" doc:"id of the login or token it ends with"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	Warning    string    `json:"warning,omitempty"`
	Secret     string    `json:"token,omitempty"`
}

// Describe leaves out what nobody may see.
func (t Token) Describe() Description {
	d := Description{ID: t.ID, Name: t.Name, Scope: t.Scope, MadeWith: t.Parent, CreatedAt: t.Created, LastUsedAt: t.Seen, ExpiresAt: t.Expires}
	if t.Expires.IsZero() {
		d.Warning = "never expires"
	}
	return d
}

// Login is a logged-in browser as its user sees it.
type Login struct {
	ID         string    `json:"id"`
	Client     string    `json:"client" doc:"what the browser called itself when it logged in"`
	Scope      Scope     `json:"scope" enum:"read,act,admin"`
	MadeWith   string    `json:"made_with,omitempty" doc:"id of the token it ends with"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at"`
	ExpiresAt  time.Time `json:"expires_at" doc:"unless it is used before"`
	EndsAt     time.Time `json:"ends_at" doc:"however often it is used"`
	Current    bool      `json:"current" doc:"the login that asks"`
}

// Describe leaves out what nobody may see.
func (s Session) Describe() Login {
	return Login{ID: s.ID, Client: s.Client, Scope: s.Scope, MadeWith: s.Parent, CreatedAt: s.Created, LastUsedAt: s.Seen, ExpiresAt: s.Expires, EndsAt: s.Ends}
}

// TokenParams are the params of the methods: name, scope and life in seconds to
// make a token, an id to revoke a token or a login. User is the login of a service whose
// tokens are meant, "" for one's own.
type TokenParams struct {
	User  string `json:"user,omitempty"`
	Name  string `json:"name,omitempty"`
	Scope Scope  `json:"scope,omitempty"`
	Life  int64  `json:"expires_in,omitempty"`
	Never bool   `json:"never_expires,omitempty"`
	ID    string `json:"id,omitempty"`
}
