package session

import "time"

// Methods with which the home's owner is asked for tokens over its socket.
const (
	MethodTokenCreate = "thole/token/create"
	MethodTokenList   = "thole/token/list"
	MethodTokenRevoke = "thole/token/revoke"
)

// Description is a token as its owner sees it. Secret is there only when the
// token was just made.
type Description struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	Secret     string    `json:"token,omitempty"`
}

// Describe leaves out what nobody may see.
func (t Token) Describe() Description {
	return Description{ID: t.ID, Name: t.Name, CreatedAt: t.Created, LastUsedAt: t.Seen, ExpiresAt: t.Expires}
}

// TokenParams are the params of the three methods: a name and a life in seconds
// to make a token, an id to revoke one.
type TokenParams struct {
	Name string `json:"name,omitempty"`
	Life int64  `json:"expires_in,omitempty"`
	ID   string `json:"id,omitempty"`
}
