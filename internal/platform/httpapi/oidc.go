package httpapi

import (
	_ "embed" // the page to which a provider sends browsers back
	"net/http"
	"net/url"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/sso"
)

// ways are those in which people can log in here.
type ways struct {
	Password bool   `json:"password" doc:"the server has accounts with passwords"`
	SSO      string `json:"sso,omitempty" doc:"what the provider of logins is called; GET /auth/oidc/start logs in there"`
}

// providerAnswer is what a provider sent a browser back with.
type providerAnswer struct {
	Code   string `json:"code"`
	State  string `json:"state"`
	Issuer string `json:"iss,omitempty"`
}

type welcomed struct {
	account
	Next string `json:"next,omitempty" doc:"the page to go on to"`
}

//go:embed callback.html
var callbackPage []byte

//go:embed callback.js
var callbackScript []byte

// logoutsPerSecond bounds how many messages of the provider are checked: a false one may cost
// a request to the provider.
const logoutsPerSecond = 10

func (s *Server) ssoRoutes() {
	s.serve("GET /auth/ways", page{Route: Route{Public: "the login page shows it"}, summary: "How people can log in here", status: 200, media: "application/json", shapes: []any{ways{}}},
		func(w http.ResponseWriter, r *http.Request) {
			var out ways
			if s.cfg.Identity != nil {
				team, err := s.cfg.Identity.Team(r.Context())
				if err != nil {
					s.refuse(w, r, err)
					return
				}
				if out.Password = team; team && s.cfg.SSO != nil {
					out.SSO = s.cfg.SSO.Label()
				}
			}
			writeJSON(w, http.StatusOK, out)
		})
	s.serve("GET /auth/oidc/start", page{Route: Route{Public: "this is where a login begins", HTML: true}, query: []string{"next"}, summary: "Log in at the provider of logins", status: 303}, s.startSSO)
	s.serve("GET /auth/oidc/callback", page{Route: Route{Public: "the provider sends browsers here; the page posts what they bring", HTML: true}, query: []string{"code", "state", "iss", "error"}, summary: "The page to which the provider of logins sends browsers back", status: 200, media: "text/html", shapes: []any{""}}, static("text/html", callbackPage))
	s.serve("GET /auth/oidc/callback.js", page{Route: Route{Public: "the script of that page; it has no secret"}, summary: "The script of that page", status: 200, media: "text/javascript", shapes: []any{""}}, static("text/javascript", callbackScript))
	s.serve("POST /auth/oidc/callback", page{Route: Route{Public: "it takes the proof that others need"}, summary: "Log in with the answer of the provider of logins", body: providerAnswer{}, status: 200, media: "application/json", shapes: []any{welcomed{}}}, s.finishSSO)
	s.serve("POST /auth/oidc/backchannel-logout", page{Route: Route{Public: "the provider proves itself with what it sends"}, summary: "Take the provider's message that logins are over", takes: []string{"application/x-www-form-urlencoded"}, status: 200}, s.endSSO)
}

func static(media string, text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media+"; charset=utf-8")
		_, _ = w.Write(text)
	}
}

// provider is where people log in, of a server that was set up.
func (s *Server) provider(r *http.Request) (*sso.Client, error) {
	if s.cfg.SSO == nil || s.cfg.Identity == nil {
		return nil, thole.Errorf(thole.CodeNotFound, "this server has no single sign-on")
	}
	if team, err := s.cfg.Identity.Team(r.Context()); err != nil || !team {
		if err == nil {
			err = thole.Errorf(thole.CodeUnavailable, "this server was not set up yet").WithHint("open the set-up link that it printed")
		}
		return nil, err
	}
	return s.cfg.SSO, nil
}

// startSSO sends a browser to the provider. Another page cannot begin a login: it would be
// the person's own, but not their wish.
func (s *Server) startSSO(w http.ResponseWriter, r *http.Request) {
	p, err := s.provider(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		http.Redirect(w, r, "/auth/account", http.StatusSeeOther)
		return
	}
	next := r.URL.Query().Get("next")
	if home, err := url.Parse(p.Page()); err == nil && !strings.EqualFold(home.Host, r.Host) { // the provider knows one name of this server, and cookies are of one
		http.Redirect(w, r, p.Page()+"/auth/oidc/start?"+url.Values{"next": {next}}.Encode(), http.StatusSeeOther)
		return
	}
	flow := s.cfg.Sessions.NewFlow(next)
	to, err := p.URL(r.Context(), flow)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.cfg.Cookies.SetFlow(w, flow.Cookie(), session.FlowLife)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (s *Server) finishSSO(w http.ResponseWriter, r *http.Request) {
	var in providerAnswer
	var p *sso.Client
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	err := decodeBody(r, "an answer", &in)
	if err == nil && !guard.Declared(r) {
		err = thole.Errorf(thole.CodeForbidden, "a browser must say its Origin")
	}
	if err == nil {
		p, err = s.provider(r)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	flow, err := s.cfg.Sessions.TakeFlow(r.Context(), s.cfg.Cookies.Flow(r), in.State)
	s.cfg.Cookies.ClearFlow(w)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	secrets, v, err := s.enter(r, p, flow, sso.Answer{Code: in.Code, Issuer: in.Issuer})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.cfg.Cookies.Set(w, secrets.Cookie, v.Ends.Sub(v.Created))
	writeJSON(w, http.StatusOK, welcomed{account: newcomer(secrets, v), Next: flow.Next})
}

// enter begins a session of whom a provider proved, with what their groups give.
func (s *Server) enter(r *http.Request, p *sso.Client, flow session.Flow, a sso.Answer) (session.Secrets, session.Session, error) {
	ctx := r.Context()
	proven, err := p.Finish(ctx, flow, a)
	if err != nil {
		return session.Secrets{}, session.Session{}, err
	}
	u, err := s.cfg.Identity.Enter(ctx, proven.Identity, p.Create())
	if err != nil {
		return session.Secrets{}, session.Session{}, err
	}
	missing, err := s.cfg.Identity.Groups(ctx, u.ID, p.Issuer(), p.Rules(proven.Groups))
	if err != nil {
		return session.Secrets{}, session.Session{}, err
	}
	for _, rule := range missing {
		s.cfg.Log.Warn("oidc.groups names what is not there", "group", rule.Group, "department", rule.Department, "on", rule.On)
	}
	return s.cfg.Sessions.Begin(ctx, session.User{ID: u.ID, Login: u.Login, Name: u.Name}, client(r), session.Proven{With: "provider", Issuer: p.Issuer(), SID: proven.SID})
}

// endSSO takes the message of a provider that logins are over (OpenID Connect Back-Channel
// Logout).
func (s *Server) endSSO(w http.ResponseWriter, r *http.Request) {
	p, err := s.provider(r)
	if err == nil && !s.logouts.Allow() {
		err = thole.Errorf(thole.CodeOverloaded, "too many logouts at a time")
	}
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		if err = r.ParseForm(); err != nil {
			err = thole.Errorf(thole.CodeInvalid, "the body is no form with a logout_token")
		}
	}
	var over session.Logout
	if err == nil {
		over, err = p.Ended(r.Context(), r.PostForm.Get("logout_token"))
	}
	if err == nil {
		err = s.cfg.Sessions.EndIssued(r.Context(), over)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}
