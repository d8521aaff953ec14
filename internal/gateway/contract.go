package gateway

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tholehq/thole"
)

// Dialect is the protocol that an agent CLI and its upstream speak to one another.
type Dialect string

const (
	Anthropic Dialect = "anthropic" // POST /v1/messages
	Responses Dialect = "responses" // POST /v1/responses
	Chat      Dialect = "chat"      // POST /v1/chat/completions
)

// Claim is what a token stands for while a turn of its thread is open.
type Claim struct {
	Executor thole.ExecutorID
	Thread   thole.ThreadID
	Turn     thole.TurnID
	Owner    thole.Owner
	Provider string
}

// Tokens resolves the token of a request together with the proof of its connection,
// both as SHA-256 of their text. Errors: thole.CodeUnauthorized for a pair that is not
// known, thole.CodeGone when the thread has no open turn in that executor; anything
// else is answered as a failure of thole that the client may retry.
type Tokens interface {
	Claim(ctx context.Context, token, proof [32]byte) (Claim, error)
}

// Tools answers calls of the tool server that every agent has. The claim is proven; all
// else of the request is the agent's.
type Tools interface {
	ServeTools(w http.ResponseWriter, r *http.Request, c Claim)
}

// Routes returns the upstreams that the first path element of a request stands for. The name is
// the client's: Routes treats it as hostile and returns thole.CodeNotFound for a route
// that the claim does not have, thole.CodeUnavailable for one whose credential is
// missing or locked, with a hint.
type Routes interface {
	Route(ctx context.Context, c Claim, route string) (Route, error)
}

// Route is a way to one or more upstreams of one dialect.
type Route struct {
	Dialect   Dialect
	Upstreams []Upstream // tried in order
	Grants    Grants
}

// Grants are the things that a route refuses unless they are set: they leave the
// executor's network policy or the turn.
type Grants struct {
	// Tools lets the model's side fetch and execute: web search, web fetch, code
	// interpreter, file search, MCP connectors.
	Tools bool
	// Stored lets a call leave state at the upstream or use state that lies there: store,
	// background, previous_response_id, conversations, files.
	Stored bool
}

// Upstream is a model service. Nothing of its address comes from a client.
type Upstream struct {
	Name string
	// Base is what "/messages", "/responses", "/chat/completions" and "/models" are
	// appended to, so it ends in /v1 where the service has that. Its query is kept.
	Base *url.URL
	// Models are the names that a client may ask for: exact, or with * for any text.
	// Empty: any.
	Models []string
	Rename map[string]string // a client's model to the name of it at this upstream
	// Sign sets the real credential and whatever headers belong to it. refused: the
	// last one was answered with 401, renew it. An error means that this upstream
	// cannot be used now.
	Sign      func(ctx context.Context, h http.Header, refused bool) error
	Item      string        // the vault item of the credential, for the record
	FirstByte time.Duration // time limit for the answer's head; 0: 10 minutes
	Parallel  int           // calls at one time; 0: any number
	Client    *http.Client  // only its Transport is used; nil: the gateway's own
}

// Ledger counts what calls cost. Begin reserves before the first byte leaves and
// returns a *thole.Error with code budget_exceeded when a budget is spent. End settles a
// call that Begin returned an id for, exactly once, with a context that outlives the
// client's.
type Ledger interface {
	Begin(ctx context.Context, c Call) (id string, err error)
	End(ctx context.Context, id string, r Result) error
}

// Call is a request for a model that is about to be sent.
type Call struct {
	Claim
	Route, Upstream, Model, Path string
	// InputEstimate is an upper bound of the input tokens, MaxOutput of the output
	// tokens: as the client asked, or the most that a model gives.
	InputEstimate, MaxOutput int64
	At                       time.Time
}

// Result is how a call ended.
type Result struct {
	// Usage is what the upstream reported. Known false: it did not, or not to the end,
	// and Usage is an upper bound.
	Usage       thole.Usage
	Known       bool
	Status      int    // 0: no answer
	Upstream    string // the one that answered, or was tried last
	Error       string
	FirstByteAt time.Time // zero: no byte of an answer came
	EndedAt     time.Time
	Waited      time.Duration // in our queue
}
