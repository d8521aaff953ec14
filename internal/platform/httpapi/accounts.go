package httpapi

import (
	"context"
	_ "embed" // the account page
	"encoding/json"
	"errors"
	"net/http"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/daemon/threads"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/unguarded"
)

// accountIn is what the holder of a link chose: a set-up also the login.
type accountIn struct {
	Code     string `json:"code"`
	Login    string `json:"login,omitempty"`
	Name     string `json:"name,omitempty"`
	Password string `json:"password"`
}

//go:embed account.html
var accountPage []byte

//go:embed account.js
var accountScript []byte

func (s *Server) accountRoutes() {
	s.serve("GET /auth/account", page{Route: Route{Public: "this is where an account begins", HTML: true}, summary: "The page of a set-up, invitation or reset, and of logins with a password", status: 200, media: "text/html", shapes: []any{""}},
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(accountPage)
		})
	s.serve("GET /auth/account.js", page{Route: Route{Public: "the script of that page; it has no secret"}, summary: "The script of the account page", status: 200, media: "text/javascript", shapes: []any{""}},
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			_, _ = w.Write(accountScript)
		})
	s.serve("POST /auth/account", page{Route: Route{Public: "it takes the proof that others need"}, summary: "Choose a password with a link, and log in", body: accountIn{}, status: 200, media: "application/json", shapes: []any{account{}}}, s.useLink)
	op(s, "PUT", "/auth/password", "Choose another password, with the old one; all other logins and API tokens of the user end", 204, s.changePassword)
	op(s, "POST", "/methods", "Call a method of the command line, as the user of the token", 200, s.callMethod)
}

// useLink uses a set-up, an invitation or a reset up and logs its holder in.
func (s *Server) useLink(w http.ResponseWriter, r *http.Request) {
	var in accountIn
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	err := decodeBody(r, "an account", &in)
	switch {
	case r.Header.Get("Cookie") != "" && !guard.Declared(r):
		err = thole.Errorf(thole.CodeForbidden, "a browser must say its Origin")
	case err == nil && s.cfg.Identity == nil:
		err = thole.Errorf(thole.CodeUnauthorized, "this server has no accounts")
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	u, err := s.cfg.Identity.Use(r.Context(), in.Code, identity.Chosen{Login: in.Login, Name: in.Name, Password: in.Password})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	secrets, v, err := s.cfg.Sessions.Begin(r.Context(), session.User{ID: u.ID, Login: u.Login, Name: u.Name}, client(r), session.Proven{With: "password"})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.welcome(w, secrets, v)
}

type passwordIn struct {
	Body struct {
		Old      string `json:"old" maxLength:"1000"`
		Password string `json:"password" maxLength:"1000" doc:"at least 10 characters"`
	}
}

// changePassword is for a person at a browser. A wrong old password is no end of their login, so
// that it is answered as a refusal; it counts as a failed login.
func (s *Server) changePassword(ctx context.Context, in *passwordIn) (*empty, error) {
	w := callerOf(ctx)
	switch {
	case s.cfg.Identity == nil:
		return nil, thole.Errorf(thole.CodeUnsupported, "this server has no passwords")
	case w.token != "":
		return nil, thole.Errorf(thole.CodeForbidden, "an API token changes no password").WithHint("change it at /auth/account#change in a browser that is logged in")
	}
	err := s.cfg.Identity.ChangePassword(context.WithoutCancel(ctx), w.actor, in.Body.Old, in.Body.Password, w.by.ID, audit.SourceOf(ctx).Address)
	if failed := (*identity.FailedLogin)(nil); errors.As(err, &failed) {
		err = thole.Errorf(thole.CodeForbidden, "the old password is wrong, or this user has none").WithHint("who runs this server can make a link for another one")
	}
	return done(err)
}

// remoteMethods are those of the home's socket that a login or token may call, and the action
// that its scope must cover. Whether the user may, the method itself decides by the actor. One
// that is not here is for the socket alone.
var remoteMethods = map[string]authz.Action{
	identity.MethodUserAdd: authz.ManageUsers, identity.MethodUserList: authz.ManageUsers, identity.MethodUserInvite: authz.ManageUsers,
	identity.MethodUserReset: authz.ManageUsers, identity.MethodUserDisable: authz.ManageUsers, identity.MethodUserEnable: authz.ManageUsers,
	identity.MethodGrantAdd: authz.ManageMembers, identity.MethodGrantList: authz.ManageMembers, identity.MethodGrantRevoke: authz.ManageMembers,
	identity.MethodDepartmentAdd: authz.ManageUsers, identity.MethodDepartmentList: authz.ManageUsers, identity.MethodDepartmentMove: authz.ManageUsers,
	threads.MethodFind: authz.ViewThread, wire.JobQuery: authz.ViewThread, wire.JobList: authz.ViewThread, wire.JobCancel: authz.ReportJob,
	wire.BatchInspect: authz.ViewThread, wire.BatchList: authz.ViewThread,
	spend.MethodUsage: authz.SeeSelf, spend.MethodPrices: authz.SeeSelf, spend.MethodBudgetList: authz.SeeSelf, spend.MethodBudgetShow: authz.SeeSelf, spend.MethodBudgetSet: authz.ManageSelf, spend.MethodBudgetRemove: authz.ManageSelf,
	session.MethodServiceToken: authz.ManageUsers, session.MethodTokenList: authz.ManageSelf, session.MethodTokenRevoke: authz.ManageSelf, session.MethodLoginList: authz.ManageSelf, session.MethodLoginRevoke: authz.ManageSelf,
	session.MethodShareList: authz.SeeSelf, session.MethodShareCreate: authz.ManageSelf, session.MethodShareRevoke: authz.ManageSelf,
	audit.MethodLatest: authz.ReadAudit, audit.MethodLinks: authz.ReadAudit, audit.MethodHead: authz.ReadAudit, audit.MethodVerify: authz.ReadAudit,
	identity.MethodDepartmentRemove: authz.ManageUsers, identity.MethodDepartmentJoin: authz.ManageUsers, identity.MethodDepartmentLeave: authz.ManageUsers,
}

type methodIn struct {
	Body struct {
		Method string          `json:"method" maxLength:"100"`
		Params json.RawMessage `json:"params,omitempty"`
	}
}

func (s *Server) callMethod(ctx context.Context, in *methodIn) (*body[any], error) {
	name := in.Body.Method
	action, known := remoteMethods[name]
	var do Method
	if known && s.cfg.Methods != nil {
		do = s.cfg.Methods(name)
	}
	if do == nil {
		return nil, thole.Errorf(thole.CodeNotFound, "no method %s for clients of the network", name)
	}
	w := callerOf(ctx)
	if !authz.TokenCovers(string(w.by.Scope), action) && !unguarded.Build {
		return nil, thole.Errorf(thole.CodeForbidden, "the login or token of scope %s does not cover %s", w.by.Scope, action)
	}
	params := in.Body.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return answer(do(authz.Doing(ctx, action), w.actor, params))
}
