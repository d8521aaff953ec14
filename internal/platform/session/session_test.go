package session_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/unguarded"
)

var ctx = context.Background()

func code(t *testing.T, err error, want thole.Code) {
	t.Helper()
	if thole.CodeOf(err) != want {
		t.Fatalf("err = %v, want %s", err, want)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestLoginWorksOnce(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		now := time.Now()
		m := session.New(open(t).LoginSessions(), func() time.Time { return now })
		link := must(m.NewLogin(ctx, thole.LocalUser))(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []session.Secrets
		var id string
		for range 8 {
			wg.Go(func() {
				value, s, err := m.Redeem(ctx, link, "browser")
				if err == nil && s.User.ID == thole.LocalUser && s.User.Login == "local" {
					mu.Lock()
					won, id = append(won, value), s.ID
					mu.Unlock()
				} else if thole.CodeOf(err) != thole.CodeUnauthorized {
					t.Errorf("redeem = %+v, %v", s, err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("the link worked %d times", len(won))
		}
		if s := must(m.Resolve(ctx, won[0]))(t); s.User.ID != thole.LocalUser || s.Client != "browser" || s.Scope != session.ScopeAdmin {
			t.Fatalf("session = %+v", s)
		}
		now = now.Add(time.Second)
		other, _, err := m.Redeem(ctx, must(m.NewLogin(ctx, thole.LocalUser))(t), "other")
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []session.Secrets{
			{Cookie: link, Proof: won[0].Proof}, {Cookie: won[0].Cookie}, {Proof: won[0].Proof}, {Cookie: won[0].Proof, Proof: won[0].Cookie},
			{Cookie: won[0].Cookie, Proof: other.Proof}, {Cookie: other.Cookie, Proof: won[0].Proof}, {Cookie: won[0].Cookie, Proof: won[0].Cookie},
		} {
			_, err := m.Resolve(ctx, wrong)
			code(t, err, thole.CodeUnauthorized)
		}
		if all := must(m.Logins(ctx, thole.LocalUser))(t); len(all) != 2 || all[0].ID != id {
			t.Fatalf("logins = %+v", all)
		}
		held, done := m.Hold(ctx, id)
		defer done()
		code(t, m.EndLogin(ctx, "00000000-0000-7000-8000-000000000009", id), thole.CodeNotFound)
		code(t, m.Revoke(ctx, thole.LocalUser, id), thole.CodeNotFound) // a login is no token
		if held.Err() != nil {
			t.Fatal("a refused end ended requests")
		}
		if err := m.EndLogin(ctx, thole.LocalUser, id); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(context.Cause(held), session.ErrEnded) {
			t.Fatalf("a request of an ended login: %v", context.Cause(held))
		}
		_, err = m.Resolve(ctx, won[0])
		code(t, err, thole.CodeUnauthorized)
		must(m.Resolve(ctx, other))(t)
	})
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	began := now
	m := session.New(storetest.SQLite(t).LoginSessions(), func() time.Time { return now })
	late := must(m.NewLogin(ctx, thole.LocalUser))(t)
	idle, _, err := m.Redeem(ctx, must(m.NewLogin(ctx, thole.LocalUser))(t), "")
	if err != nil {
		t.Fatal(err)
	}
	used, _, err := m.Redeem(ctx, must(m.NewLogin(ctx, thole.LocalUser))(t), "")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(session.LoginLife)
	_, _, err = m.Redeem(ctx, late, "")
	code(t, err, thole.CodeUnauthorized)
	for now = began; now.Before(began.Add(session.Life)); now = now.Add(session.IdleLife - time.Hour) {
		must(m.Resolve(ctx, used))(t) // being used keeps it alive
		if now.After(began.Add(session.IdleLife)) {
			_, err = m.Resolve(ctx, idle)
			code(t, err, thole.CodeUnauthorized)
		}
	}
	now = began.Add(session.Life)
	_, err = m.Resolve(ctx, used) // but not for ever
	code(t, err, thole.CodeUnauthorized)
	if err := m.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if all := must(m.Logins(ctx, thole.LocalUser))(t); len(all) != 0 {
		t.Fatalf("logins = %+v", all)
	}
}

func TestTokens(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		now := time.Now()
		m := session.New(open(t).LoginSessions(), func() time.Time { return now })
		value, tok, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: " ci ", Life: time.Hour})
		if err != nil || tok.Name != "ci" || tok.Scope != session.ScopeAct || !strings.HasPrefix(value, "thole_") {
			t.Fatalf("token = %q %+v %v", value, tok, err)
		}
		if got := must(m.Bearer(ctx, value))(t); got.ID != tok.ID || got.User.ID != thole.LocalUser {
			t.Fatalf("bearer = %+v", got)
		}
		browser, s, err := m.Exchange(ctx, value, "")
		if err != nil || s.Expires.After(now.Add(time.Hour)) || s.Scope != session.ScopeAct {
			t.Fatalf("a session of a token must not outlive it or do more: %+v %v", s, err)
		}
		must(m.Resolve(ctx, browser))(t)
		for _, wrong := range []string{browser.Cookie, browser.Proof, value + "x"} {
			_, err = m.Bearer(ctx, wrong)
			code(t, err, thole.CodeUnauthorized)
		}
		code(t, m.Revoke(ctx, "00000000-0000-7000-8000-000000000009", tok.ID), thole.CodeNotFound)
		now = now.Add(time.Hour)
		_, err = m.Bearer(ctx, value)
		code(t, err, thole.CodeUnauthorized)
		list := must(m.Tokens(ctx, thole.LocalUser))(t)
		if len(list) != 1 || list[0].Seen.IsZero() {
			t.Fatalf("tokens = %+v", list)
		}
		if err := m.Revoke(ctx, thole.LocalUser, tok.ID); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []session.Grant{{}, {Name: "x", Life: -1}, {Name: "x", Scope: "root"}, {Name: "x", Life: 1, Never: true}} {
			_, _, err = m.NewToken(ctx, thole.LocalUser, bad)
			code(t, err, thole.CodeInvalid)
		}
		_, tok, err = m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "default"})
		if err != nil || !tok.Expires.Equal(now.Add(session.TokenLife)) || tok.Describe().Warning != "" {
			t.Fatalf("a token expires by default: %+v %v", tok, err)
		}
		_, tok, err = m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "for ever", Never: true})
		if err != nil || !tok.Expires.IsZero() || tok.Describe().Warning == "" {
			t.Fatalf("a token that never expires is said to: %+v %v", tok, err)
		}
	})
}

// Being used does not carry the login of a token beyond the token's own end.
func TestLoginOfATokenEndsWithIt(t *testing.T) {
	for _, life := range []time.Duration{3 * time.Hour, session.IdleLife + time.Hour} {
		now := time.Now()
		began := now
		m := session.New(storetest.SQLite(t).LoginSessions(), func() time.Time { return now })
		value, _, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "used", Life: life})
		if err != nil {
			t.Fatal(err)
		}
		browser, _, err := m.Exchange(ctx, value, "")
		if err != nil {
			t.Fatal(err)
		}
		now = began.Add(2 * time.Hour)
		must(m.Resolve(ctx, browser))(t)
		now = began.Add(life)
		_, err = m.Resolve(ctx, browser)
		code(t, err, thole.CodeUnauthorized)
	}
}

// A token makes none that may do more or lasts longer than itself.
func TestTokensMakeNoMore(t *testing.T) {
	now := time.Now()
	m := session.New(storetest.SQLite(t).LoginSessions(), func() time.Time { return now })
	_, parent, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "parent", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	by := session.Maker{ID: parent.ID, Scope: parent.Scope, Ends: parent.Expires, Fresh: true}
	_, _, err = m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "more", Scope: session.ScopeAdmin, By: by})
	code(t, err, thole.CodeForbidden)
	for _, g := range []session.Grant{{Never: true}, {}, {Life: 2 * time.Hour}} {
		g.Name, g.By, g.Scope = "same", by, session.ScopeRead
		if _, child, err := m.NewToken(ctx, thole.LocalUser, g); err != nil || !child.Expires.Equal(parent.Expires) {
			t.Fatalf("%+v outlives its maker: %+v, %v", g, child, err)
		}
	}
}

// What was made with a login or a token ends with it, however deep and however it
// ends, and its requests in progress end too.
func TestCascade(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		now := time.Now()
		m := session.New(open(t).LoginSessions(), func() time.Time { return now })
		for _, how := range []string{"revoke", "expire", "sweep"} {
			_, root, err := m.Redeem(ctx, must(m.NewLogin(ctx, thole.LocalUser))(t), "")
			if err != nil {
				t.Fatal(err)
			}
			value, tok, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "child", Scope: session.ScopeAdmin, By: session.Maker{ID: root.ID, Scope: root.Scope, Ends: root.Ends, Fresh: true}})
			if err != nil {
				t.Fatal(err)
			}
			browser, s, err := m.Exchange(ctx, value, "")
			if err != nil {
				t.Fatal(err)
			}
			leaf, last, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "leaf", By: session.Maker{ID: s.ID, Scope: s.Scope, Ends: s.Ends, Fresh: true}})
			if err != nil {
				t.Fatal(err)
			}
			stays, _, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "stays"})
			if err != nil {
				t.Fatal(err)
			}
			held, done := m.Hold(ctx, last.ID)
			must(m.Bearer(ctx, leaf))(t)
			switch how {
			case "revoke":
				err = m.EndLogin(ctx, thole.LocalUser, root.ID)
			case "expire": // the root was not used, what hangs on it was
				now = now.Add(session.IdleLife)
			case "sweep":
				now = now.Add(session.IdleLife)
				err = m.Sweep(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			if ended := held.Err() != nil; ended != (how != "expire") {
				t.Errorf("%s: a request in progress ended: %v", how, ended)
			}
			done()
			for _, v := range []string{value, leaf} {
				_, err := m.Bearer(ctx, v)
				code(t, err, thole.CodeUnauthorized)
			}
			_, err = m.Resolve(ctx, browser)
			code(t, err, thole.CodeUnauthorized)
			_, _, err = m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "late", By: session.Maker{ID: tok.ID, Scope: tok.Scope, Ends: tok.Expires, Fresh: true}})
			code(t, err, thole.CodeUnauthorized)
			must(m.Bearer(ctx, stays))(t)
		}
	})
}

// Who stole a token or a login has it until it ends: no other one comes of it. On the
// build without the guards it becomes one that outlives it.
func TestAStolenSecretMakesNoToken(t *testing.T) {
	now := time.Now()
	m := session.New(storetest.SQLite(t).LoginSessions(), func() time.Time { return now })
	value, tok, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "admin", Scope: session.ScopeAdmin})
	if err != nil {
		t.Fatal(err)
	}
	_, exchanged, err := m.Exchange(ctx, value, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]session.Maker{"token": {ID: tok.ID, Scope: tok.Scope, Ends: tok.Expires}, "login": {ID: exchanged.ID, Scope: exchanged.Scope, Ends: exchanged.Ends}} {
		if _, _, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: name, By: by, Scope: session.ScopeAdmin}); (err == nil) != unguarded.Build {
			t.Errorf("with a stolen %s: %v", name, err)
		}
	}
}

// A token, a login that came from one and a login by link that is not fresh make a
// token only with the code of a new link, of the same user, which is used up.
func TestStepUp(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		now := time.Now()
		m := session.New(open(t).LoginSessions(), func() time.Time { return now })
		value, tok, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "admin", Scope: session.ScopeAdmin})
		if err != nil {
			t.Fatal(err)
		}
		_, exchanged, err := m.Exchange(ctx, value, "")
		if err != nil {
			t.Fatal(err)
		}
		_, linked, err := m.Redeem(ctx, must(m.NewLogin(ctx, thole.LocalUser))(t), "")
		if err != nil {
			t.Fatal(err)
		}
		if m.Fresh(exchanged) || !m.Fresh(linked) {
			t.Errorf("fresh: exchanged %v, by link %v", m.Fresh(exchanged), m.Fresh(linked))
		}
		now = now.Add(session.StepUpLife)
		if m.Fresh(linked) {
			t.Error("a login stays fresh")
		}
		for name, by := range map[string]session.Maker{"token": {ID: tok.ID, Scope: tok.Scope, Ends: tok.Expires}, "exchanged": {ID: exchanged.ID, Scope: exchanged.Scope, Ends: exchanged.Ends},
			"link": {ID: linked.ID, Scope: linked.Scope, Ends: linked.Ends}} {
			g := session.Grant{Name: name, By: by}
			_, _, err = m.NewToken(ctx, thole.LocalUser, g)
			code(t, err, thole.CodeForbidden)
			old := must(m.NewLogin(ctx, thole.LocalUser))(t)
			now = now.Add(session.LoginLife)
			for _, g.Code = range []string{"x", value, old} {
				_, _, err = m.NewToken(ctx, thole.LocalUser, g)
				code(t, err, thole.CodeUnauthorized)
			}
			g.Code = must(m.NewLogin(ctx, thole.LocalUser))(t)
			_, _, err = m.NewToken(ctx, "00000000-0000-7000-8000-000000000009", g)
			code(t, err, thole.CodeUnauthorized)
			if _, made, err := m.NewToken(ctx, thole.LocalUser, g); err != nil || made.Parent != by.ID {
				t.Errorf("%s with a fresh code: %+v, %v", name, made, err)
			}
			_, _, err = m.NewToken(ctx, thole.LocalUser, g)
			code(t, err, thole.CodeUnauthorized)
		}
		if all := must(m.Tokens(ctx, thole.LocalUser))(t); len(all) != 4 {
			t.Errorf("%d tokens: %+v", len(all), all)
		}
	})
}

func TestTokenLimit(t *testing.T) {
	m := session.New(storetest.SQLite(t).LoginSessions(), nil)
	var err error
	for i := 0; i < 101 && err == nil; i++ {
		_, _, err = m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "t"})
	}
	code(t, err, thole.CodeOverloaded)
}
