package appserver

import (
	"cmp"
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// What pays for an agent's models, as far as the contract has words for it.
const (
	AccountKey     = "apiKey"  // a key or a token, of any service
	AccountChatGPT = "chatgpt" // a login at ChatGPT
)

// registerAccount serves what pays for the models of the agent that a connection is with. No
// credential leaves the server, and no client has to sign in: requiresOpenaiAuth is false.
func (s *Server) registerAccount() {
	inAccount(on(s, "account/read", s.accountRead), serial.Shared)
	inAccount(on(s, "getAuthStatus", s.authStatus), serial.Shared)
	inAccount(s.methods["account/rateLimits/read"], serial.Shared)
}

func (s *Server) accountRead(ctx context.Context, c *conn, _ *app.Empty) (answer, error) {
	kind := s.account(ctx, c)
	account := "null"
	switch info := c.peer().info; {
	case kind == AccountChatGPT && info.Name != terminal:
		// The TUI would ask services of ChatGPT for limits and messages, which are not here.
		account = `{"type":"chatgpt","email":null,"planType":"unknown"}`
	case kind != "", info.Name == terminal && version.Older(info.Version, signsIn):
		account = `{"type":"apiKey"}`
	}
	return result(json.RawMessage(`{"account":`+account+`,"requiresOpenaiAuth":false,"workspaceRouting":null}`), nil)
}

func (s *Server) authStatus(ctx context.Context, c *conn, _ *app.Empty) (answer, error) {
	kind := s.account(ctx, c)
	method := map[string]string{AccountKey: `"apikey"`, AccountChatGPT: `"chatgpt"`}[kind]
	return result(json.RawMessage(`{"authMethod":`+cmp.Or(method, "null")+`,"authToken":null,"requiresOpenaiAuth":false}`), nil)
}

// account is what pays for the agent of the thread that the connection follows or is about to
// open, else for that of its user's new threads; "" if nothing does. What cannot be found out
// is nothing too: clients do not start without an answer.
func (s *Server) account(ctx context.Context, c *conn) string {
	if s.cfg.Account == nil {
		return ""
	}
	def, err := s.defaults(ctx, c)
	if err != nil {
		return s.unpaid(err)
	}
	threads, err := s.near(ctx, c)
	if err != nil {
		return s.unpaid(err)
	}
	name := cmp.Or(def.Provider, s.catalog.provider())
	if len(threads) > 0 {
		name = cmp.Or(threads[0].Settings.Provider, name)
	}
	kind, err := s.cfg.Account(ctx, thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: c.actor.User}, name)
	if err != nil {
		return s.unpaid(err)
	}
	return kind
}

func (s *Server) unpaid(err error) string {
	s.cfg.Log.Warn("what pays for models could not be found", "err", err)
	return ""
}
