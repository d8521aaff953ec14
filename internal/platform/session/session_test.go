package session_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/store/storetest"
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
		var won []string
		for range 8 {
			wg.Go(func() {
				value, s, err := m.Redeem(ctx, link, "browser")
				if err == nil && s.User.ID == thole.LocalUser && s.User.Login == "local" {
					mu.Lock()
					won = append(won, value)
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
		if s := must(m.Resolve(ctx, won[0]))(t); s.User.ID != thole.LocalUser || s.Client != "browser" {
			t.Fatalf("session = %+v", s)
		}
		_, err := m.Resolve(ctx, link)
		code(t, err, thole.CodeUnauthorized) // a login code is no cookie
		if err := m.End(ctx, won[0]); err != nil {
			t.Fatal(err)
		}
		_, err = m.Resolve(ctx, won[0])
		code(t, err, thole.CodeUnauthorized)
	})
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	m := session.New(storetest.SQLite(t).LoginSessions(), func() time.Time { return now })
	late := must(m.NewLogin(ctx, thole.LocalUser))(t)
	link := must(m.NewLogin(ctx, thole.LocalUser))(t)
	value, _, err := m.Redeem(ctx, link, "")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(session.LoginLife)
	_, _, err = m.Redeem(ctx, late, "")
	code(t, err, thole.CodeUnauthorized)
	for range 3 { // being used keeps it alive
		now = now.Add(session.Life - time.Hour)
		must(m.Resolve(ctx, value))(t)
	}
	now = now.Add(session.Life)
	_, err = m.Resolve(ctx, value)
	code(t, err, thole.CodeUnauthorized)
	if err := m.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestTokens(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		now := time.Now()
		m := session.New(open(t).LoginSessions(), func() time.Time { return now })
		value, tok, err := m.NewToken(ctx, thole.LocalUser, " ci ", time.Hour)
		if err != nil || tok.Name != "ci" || !strings.HasPrefix(value, "thole_") {
			t.Fatalf("token = %q %+v %v", value, tok, err)
		}
		if got := must(m.Bearer(ctx, value))(t); got.ID != tok.ID || got.User.ID != thole.LocalUser {
			t.Fatalf("bearer = %+v", got)
		}
		cookie, s, err := m.Exchange(ctx, value, "")
		if err != nil || s.Expires.After(now.Add(time.Hour)) {
			t.Fatalf("a session of a token must not outlive it: %+v %v", s, err)
		}
		must(m.Resolve(ctx, cookie))(t)
		_, err = m.Bearer(ctx, cookie)
		code(t, err, thole.CodeUnauthorized)
		_, err = m.Bearer(ctx, value+"x")
		code(t, err, thole.CodeUnauthorized)
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
		_, _, err = m.NewToken(ctx, thole.LocalUser, "", 0)
		code(t, err, thole.CodeInvalid)
	})
}

// Being used does not carry the session of a token beyond the token's own end.
func TestSessionOfATokenEndsWithIt(t *testing.T) {
	for _, life := range []time.Duration{3 * time.Hour, session.Life + time.Hour} {
		now := time.Now()
		began := now
		m := session.New(storetest.SQLite(t).LoginSessions(), func() time.Time { return now })
		value, _, err := m.NewToken(ctx, thole.LocalUser, "used", life)
		if err != nil {
			t.Fatal(err)
		}
		cookie, _, err := m.Exchange(ctx, value, "")
		if err != nil {
			t.Fatal(err)
		}
		now = began.Add(2 * time.Hour)
		must(m.Resolve(ctx, cookie))(t)
		now = began.Add(life)
		_, err = m.Resolve(ctx, cookie)
		code(t, err, thole.CodeUnauthorized)
	}
}

func TestTokenLimit(t *testing.T) {
	m := session.New(storetest.SQLite(t).LoginSessions(), nil)
	var err error
	for i := 0; i < 101 && err == nil; i++ {
		_, _, err = m.NewToken(ctx, thole.LocalUser, "t", 0)
	}
	code(t, err, thole.CodeOverloaded)
}
