package httpapi

import (
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/strictjson"
)

// authenticate finds out who calls: an API token, else a session cookie. A cookie
// travels with requests that a page caused, so an acting request must say
// which page that was.
func (s *Server) authenticate(r *http.Request) (who, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, value, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return who{}, thole.Errorf(thole.CodeUnauthorized, "only Bearer tokens are known here")
		}
		value = strings.TrimSpace(value)
		t, err := s.cfg.Sessions.Bearer(r.Context(), value)
		if err != nil {
			return who{}, err
		}
		return who{actor: thole.Actor{User: t.User.ID, Via: "token", Client: client(r)}, user: t.User, expires: t.Expires, token: value}, nil
	}
	value := s.cfg.Cookies.Value(r)
	if value == "" {
		return who{}, thole.Errorf(thole.CodeUnauthorized, "not logged in").WithHint("open the link that `thole up` printed, or send an API token")
	}
	if guard.Acts(r) && !guard.Declared(r) {
		return who{}, thole.Errorf(thole.CodeForbidden, "a request with a cookie must say its Origin").WithHint("scripts use an API token")
	}
	v, err := s.cfg.Sessions.Resolve(r.Context(), value)
	if err != nil {
		return who{}, err
	}
	return who{actor: thole.Actor{User: v.User.ID, Via: "cookie", Client: client(r)}, user: v.User, expires: v.Expires, cookie: value}, nil
}

// stillIn reports whether a caller who was let in would be again: streams outlive
// a logout and the end of a token.
func (s *Server) stillIn(r *http.Request) bool {
	w := r.Context().Value(whoKey).(who)
	var err error
	if w.token != "" {
		_, err = s.cfg.Sessions.Bearer(r.Context(), w.token)
	} else {
		_, err = s.cfg.Sessions.Resolve(r.Context(), w.cookie)
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

// loginIn is a token that becomes a cookie.
type loginIn struct {
	Token string `json:"token"`
}

// account is who is logged in.
type account struct {
	User struct {
		ID    string `json:"id"`
		Login string `json:"login"`
		Name  string `json:"name"`
	} `json:"user"`
	Via       string    `json:"via" enum:"cookie,token"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

func accountOf(u session.User, via string, expires time.Time) account {
	a := account{Via: via, ExpiresAt: expires}
	a.User.ID, a.User.Login, a.User.Name = string(u.ID), u.Login, u.Name
	return a
}

func (s *Server) authRoutes() {
	s.serve("GET /auth/login", page{Route: Route{Public: true, HTML: true}, summary: "Log in with the code of a link", query: []string{"code", "next"}, status: 200, media: "text/html", shapes: []any{""}}, s.followLink)
	s.serve("POST /auth/login", page{Route: Route{Public: true}, summary: "Log in with an API token", body: loginIn{}, status: 200, media: "application/json", shapes: []any{account{}}}, s.exchange)
	s.serve("POST /auth/logout", page{summary: "End this login", status: 204}, s.logout)
	op(s, "GET", "/auth/session", "Who is logged in", 200, func(ctx context.Context, _ *struct{}) (*body[account], error) {
		w := ctx.Value(whoKey).(who)
		return answer(accountOf(w.user, w.actor.Via, w.expires), nil)
	})
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
			Name      string `json:"name" minLength:"1" maxLength:"200"`
			ExpiresIn int64  `json:"expires_in,omitempty" minimum:"0" maximum:"315360000" doc:"seconds; never when absent"`
		}
	}) (*body[session.Description], error) {
		secret := ""
		t, err := once(ctx, s, "POST /auth/tokens", in.Key, func() (session.Description, error) {
			value, t, err := s.cfg.Sessions.NewToken(ctx, actorOf(ctx).User, in.Body.Name, time.Duration(in.Body.ExpiresIn)*time.Second)
			secret = value
			return t.Describe(), err
		})
		t.Secret = secret // a repeat gets the token's name, never its secret
		return answer(t, err)
	})
	op(s, "DELETE", "/auth/tokens/{token_id}", "Revoke an API token", 204, func(ctx context.Context, in *struct {
		ID string `path:"token_id"`
	}) (*empty, error) {
		return done(s.cfg.Sessions.Revoke(ctx, actorOf(ctx).User, in.ID))
	})
}

// loginPage leads on by a refresh and not by a redirect: after a redirect from a
// foreign page a strict cookie would not be sent.
var loginPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
{{if .Next}}<meta http-equiv="refresh" content="0;url={{.Next}}">{{end}}<title>thole</title>
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem}h1{font-size:1.2rem}</style></head>
<body>{{if .Next}}<p>You are logged in. <a href="{{.Next}}">Continue</a></p>{{else}}<h1>This link does not work any more</h1>
<p>{{.Problem}}</p><p>{{.Hint}}</p><p><a href="/">Log in with an API token</a></p>{{end}}</body></html>
`))
})

func (s *Server) followLink(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var page struct{ Next, Problem, Hint string }
	value, v, err := s.cfg.Sessions.Redeem(r.Context(), r.URL.Query().Get("code"), client(r))
	if err != nil {
		if s.cfg.Cookies.Value(r) != "" { // an old link opened again by a user who is logged in
			if _, rerr := s.cfg.Sessions.Resolve(r.Context(), s.cfg.Cookies.Value(r)); rerr == nil {
				page.Next = next(r)
				_ = loginPage().Execute(w, page)
				return
			}
		}
		p := s.problem(r, traceOf(r.Context()), err)
		page.Problem, page.Hint = p.Detail, p.Hint
		w.WriteHeader(p.Status)
		_ = loginPage().Execute(w, page)
		return
	}
	s.cfg.Cookies.Set(w, value, v.Expires.Sub(v.Created))
	page.Next = next(r)
	_ = loginPage().Execute(w, page)
}

// next is a path of this server to go on to, never another place.
func next(r *http.Request) string {
	n := r.URL.Query().Get("next")
	if !strings.HasPrefix(n, "/") || strings.HasPrefix(n, "//") || strings.ContainsAny(n, "\\\x00\r\n;'\"") {
		return "/"
	}
	return n
}

func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	if guard.Acts(r) && r.Header.Get("Cookie") != "" && !guard.Declared(r) {
		s.refuse(w, r, thole.Errorf(thole.CodeForbidden, "a browser must say its Origin"))
		return
	}
	var in loginIn
	if err := strictjson.Read(http.MaxBytesReader(w, r.Body, 4<<10), &in); err != nil {
		s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "log in: the body is not {\"token\": …}"))
		return
	}
	value, v, err := s.cfg.Sessions.Exchange(r.Context(), in.Token, client(r))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.cfg.Cookies.Set(w, value, v.Expires.Sub(v.Created))
	writeJSON(w, http.StatusOK, accountOf(v.User, "cookie", v.Expires))
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c := r.Context().Value(whoKey).(who).cookie; c != "" {
		if err := s.cfg.Sessions.End(r.Context(), c); err != nil {
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
