package httpapi

import (
	"context"
	_ "embed" // the login page
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/session"
)

// ProofHeader carries the second secret of a browser's login. Only scripts of our
// own origin know it; the cookie reaches every port of the host.
const ProofHeader = "Thole-Proof"

// authenticate finds out who calls: an API token, a ticket, or a browser with the
// cookie and the proof of one login. A cookie travels with requests that a page
// caused, so an acting request must say which page that was.
func (s *Server) authenticate(r *http.Request) (who, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, value, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return who{}, thole.Errorf(thole.CodeUnauthorized, "only Bearer tokens are known here")
		}
		return s.bearer(r, strings.TrimSpace(value))
	}
	cookie := s.cfg.Cookies.Value(r)
	if cookie != "" && guard.Acts(r) && !guard.Declared(r) {
		return who{}, thole.Errorf(thole.CodeForbidden, "a request with a cookie must say its Origin").WithHint("scripts use an API token")
	}
	if ticket, ok := takeTicket(r); ok {
		return s.useTicket(ticket, r, cookie)
	}
	if cookie == "" {
		return who{}, thole.Errorf(thole.CodeUnauthorized, "not logged in").WithHint("open the link that `thole up` printed, or send an API token")
	}
	return s.browser(r, session.Secrets{Cookie: cookie, Proof: r.Header.Get(ProofHeader)})
}

func (s *Server) bearer(r *http.Request, value string) (who, error) {
	t, err := s.cfg.Sessions.Bearer(r.Context(), value)
	if err != nil {
		return who{}, err
	}
	by := session.Maker{ID: t.ID, Scope: t.Scope, Ends: t.Expires}
	return who{actor: thole.Actor{User: t.User.ID, Via: "token", Client: client(r)}, user: t.User, by: by, expires: t.Expires, token: value}, nil
}

func (s *Server) browser(r *http.Request, secrets session.Secrets) (who, error) {
	v, err := s.cfg.Sessions.Resolve(r.Context(), secrets)
	if err != nil {
		return who{}, err
	}
	by := session.Maker{ID: v.ID, Scope: v.Scope, Ends: v.Ends, Fresh: s.cfg.Sessions.Fresh(v)}
	return who{actor: thole.Actor{User: v.User.ID, Via: "cookie", Client: client(r)}, user: v.User, by: by, expires: v.Expires, login: secrets, issuer: v.Issuer}, nil
}

// stillIn reports whether a caller who was let in would be again: streams outlive
// a logout and the end of a token.
func (s *Server) stillIn(r *http.Request) bool { return s.known(r, r.Context().Value(whoKey).(who)) }

func (s *Server) known(r *http.Request, w who) bool {
	var err error
	if w.token != "" {
		_, err = s.bearer(r, w.token)
	} else {
		_, err = s.browser(r, w.login)
	}
	return thole.CodeOf(err) != thole.CodeUnauthorized
}

func client(r *http.Request) string {
	c := r.UserAgent()
	if len(c) > 200 {
		c = c[:200]
	}
	return strings.ToValidUTF8(c, "")
}

// loginIn is what a browser logs in with: the code of a link, a token, or a login and its
// password.
type loginIn struct {
	Code     string `json:"code,omitempty"`
	Token    string `json:"token,omitempty"`
	Login    string `json:"login,omitempty"`
	Password string `json:"password,omitempty"`
}

// account is who is logged in.
type account struct {
	User struct {
		ID    string `json:"id"`
		Login string `json:"login"`
		Name  string `json:"name"`
	} `json:"user"`
	Via       string        `json:"via" enum:"cookie,token"`
	ID        string        `json:"id" doc:"of the login or token"`
	Scope     session.Scope `json:"scope" enum:"jobs,read,act,admin"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
	Local     bool          `json:"local,omitempty" doc:"a browser of this machine: its directories can be sources"`
	LogoutURL string        `json:"logout_url,omitempty" doc:"where to log out at the provider of logins too, after the logout here"`
	Proof     string        `json:"proof,omitempty" doc:"to be sent as Thole-Proof with the cookie; only in the answer to a login"`
}

func accountOf(w who) account {
	a := account{Via: w.actor.Via, ID: w.by.ID, Scope: w.by.Scope, ExpiresAt: w.expires, Local: w.local}
	a.User.ID, a.User.Login, a.User.Name = string(w.user.ID), w.user.Login, w.user.Name
	return a
}

func (s *Server) authRoutes() {
	s.serve("GET /auth/login", page{Route: Route{Public: "this is where a login begins", HTML: true}, summary: "The page that a login link opens; it posts the code", status: 200, media: "text/html", shapes: []any{""}}, s.loginPage)
	s.serve("GET /auth/login.js", page{Route: Route{Public: "the script of that page; it has no secret"}, summary: "The script of the login page", status: 200, media: "text/javascript", shapes: []any{""}}, serveLoginScript)
	s.serve("POST /auth/login", page{Route: Route{Public: "it takes the proof that others need"}, summary: "Log in with the code of a link, an API token, or a login and its password", body: loginIn{}, status: 200, media: "application/json", shapes: []any{account{}}}, s.logIn)
	s.accountRoutes()
	s.ssoRoutes()
	s.deviceRoutes()
	s.contractRoutes()
	s.serve("POST /auth/logout", page{summary: "End this login or revoke this API token", status: 204}, s.logout)
	op(s, "GET", "/auth/session", "Who is logged in", 200, func(ctx context.Context, _ *struct{}) (*body[account], error) {
		w := ctx.Value(whoKey).(who)
		a := accountOf(w)
		if s.cfg.SSO != nil && w.issuer == s.cfg.SSO.Issuer() {
			a.LogoutURL = s.cfg.SSO.EndURL()
		}
		return answer(a, nil)
	})
	op(s, "GET", "/auth/logins", "List logged-in browsers", 200, func(ctx context.Context, _ *struct{}) (*body[list[session.Login]], error) {
		all, err := s.cfg.Sessions.Logins(ctx, actorOf(ctx).User)
		out := list[session.Login]{Items: make([]session.Login, 0, len(all))}
		for _, v := range all {
			d := v.Describe()
			d.Current = d.ID == ctx.Value(whoKey).(who).by.ID
			out.Items = append(out.Items, d)
		}
		return answer(out, err)
	})
	op(s, "DELETE", "/auth/logins/{login_id}", "Log a browser out; what was made with its login ends too", 204, func(ctx context.Context, in *struct {
		ID string `path:"login_id"`
	}) (*empty, error) {
		return done(s.cfg.Sessions.EndLogin(context.WithoutCancel(ctx), actorOf(ctx).User, in.ID))
	})
	op(s, "POST", "/auth/tickets", "Make a ticket for one GET of one path by what cannot send a header", 201, s.makeTicket)
	op(s, "GET", "/auth/tokens", "List API tokens", 200, func(ctx context.Context, _ *struct{}) (*body[list[session.Description]], error) {
		all, err := s.cfg.Sessions.Tokens(ctx, actorOf(ctx).User)
		out := list[session.Description]{Items: make([]session.Description, 0, len(all))}
		for _, t := range all {
			out.Items = append(out.Items, t.Describe())
		}
		return answer(out, err)
	})
	op(s, "POST", "/auth/tokens", "Make an API token", 201, func(ctx context.Context, in *struct {
		KeyIn
		Body struct {
			Name      string        `json:"name" minLength:"1" maxLength:"200"`
			Scope     session.Scope `json:"scope,omitempty" enum:"jobs,read,act,admin" doc:"at most the caller's own; act when absent"`
			ExpiresIn int64         `json:"expires_in,omitempty" minimum:"0" maximum:"315360000" doc:"seconds; 90 days when absent, at most the caller's own"`
			Code      string        `json:"confirm_code,omitempty" maxLength:"200" doc:"code of a new login link, used up by this; needed but for a login by link of the last 10 minutes"`
		}
	}) (*body[session.Description], error) {
		secret := ""
		t, err := once(ctx, s, "POST /auth/tokens", in.Key, []any{in.Body.Name, in.Body.Scope, in.Body.ExpiresIn}, func() (session.Description, error) {
			value, t, err := s.cfg.Sessions.NewToken(ctx, actorOf(ctx).User, session.Grant{
				Name: in.Body.Name, Scope: in.Body.Scope, Life: time.Duration(in.Body.ExpiresIn) * time.Second, By: ctx.Value(whoKey).(who).by, Code: in.Body.Code,
			})
			secret = value
			return t.Describe(), err
		})
		t.Secret = secret // a repeat gets the token's name, never its secret
		return answer(t, err)
	})
	op(s, "DELETE", "/auth/tokens/{token_id}", "Revoke an API token", 204, func(ctx context.Context, in *struct {
		ID string `path:"token_id"`
	}) (*empty, error) {
		return done(s.cfg.Sessions.Revoke(context.WithoutCancel(ctx), actorOf(ctx).User, in.ID))
	})
}

// loginPage asks for a click when another page led here: that page may have put a
// code of its own into the address. What the user opened goes on by
// itself. GET and HEAD use no code up: it is in the fragment, which is not sent.
func (s *Server) loginPage(w http.ResponseWriter, r *http.Request) {
	site := r.Header.Get("Sec-Fetch-Site")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = loginTemplate().Execute(w, struct{ Ask bool }{site != "none" && site != "same-origin"})
}

var loginTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("login").Parse(loginHTML)) })

//go:embed login.html
var loginHTML string

//go:embed login.js
var loginScript []byte

func serveLoginScript(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write(loginScript)
}

func (s *Server) logIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Cookie") != "" && !guard.Declared(r) {
		s.refuse(w, r, thole.Errorf(thole.CodeForbidden, "a browser must say its Origin"))
		return
	}
	var in loginIn
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := decodeBody(r, "a login", &in); err != nil {
		s.refuse(w, r, err)
		return
	}
	secrets, v, err := s.begin(r, in)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.welcome(w, secrets, v)
}

// begin starts a session with the one proof that a body has.
func (s *Server) begin(r *http.Request, in loginIn) (session.Secrets, session.Session, error) {
	switch {
	case in.Code != "" && in.Token == "" && in.Login == "":
		return s.cfg.Sessions.Redeem(r.Context(), in.Code, client(r))
	case in.Token != "" && in.Code == "" && in.Login == "":
		return s.cfg.Sessions.Exchange(r.Context(), in.Token, client(r))
	case in.Login != "" && in.Code == "" && in.Token == "" && s.cfg.Identity != nil:
		u, err := s.cfg.Identity.LogIn(r.Context(), in.Login, in.Password, s.address(r))
		if err != nil {
			return session.Secrets{}, session.Session{}, err
		}
		return s.cfg.Sessions.Begin(r.Context(), session.User{ID: u.ID, Login: u.Login, Name: u.Name}, client(r), session.Proven{With: "password"})
	}
	return session.Secrets{}, session.Session{}, thole.Errorf(thole.CodeInvalid, "log in: the body must be one of {\"code\": …}, {\"token\": …} or {\"login\": …, \"password\": …}")
}

// welcome gives a browser its new login. The cookie that it had is replaced: nobody is
// logged in with a secret that they were handed before.
func (s *Server) welcome(w http.ResponseWriter, secrets session.Secrets, v session.Session) {
	s.cfg.Cookies.Set(w, secrets.Cookie, v.Ends.Sub(v.Created))
	writeJSON(w, http.StatusOK, newcomer(secrets, v))
}

func newcomer(secrets session.Secrets, v session.Session) account {
	a := accountOf(who{actor: thole.Actor{Via: "cookie"}, user: v.User, by: session.Maker{ID: v.ID, Scope: v.Scope}, expires: v.Expires})
	a.Proof = secrets.Proof
	return a
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	caller := r.Context().Value(whoKey).(who)
	if caller.token != "" {
		if err := s.cfg.Sessions.Revoke(context.WithoutCancel(r.Context()), caller.user.ID, caller.by.ID); err != nil && thole.CodeOf(err) != thole.CodeNotFound {
			s.refuse(w, r, err)
			return
		}
	} else {
		if err := s.cfg.Sessions.EndLogin(context.WithoutCancel(r.Context()), caller.user.ID, caller.by.ID); err != nil && thole.CodeOf(err) != thole.CodeNotFound {
			s.refuse(w, r, err)
			return
		}
		s.cfg.Cookies.Clear(w)
	}
	w.WriteHeader(http.StatusNoContent)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
